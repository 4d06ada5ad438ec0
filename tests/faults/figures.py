"""The figures of a run, as a table for people."""

from __future__ import annotations

from tests.faults.chaos import Outcome


def table(outcome: Outcome) -> str:
    deeds, hooks = outcome.deeds, outcome.webhooks
    rows = [
        ("labels", f"{deeds['labels']}, of them {deeds['edits']} changed and {deeds['deletions']} deleted later"),
        ("skips", str(deeds["skips"])),
        ("labels nobody had asked for", str(outcome.manual)),
        ("rounds / models", f"{outcome.rounds} / {outcome.models}"),
        ("trainings run to their end", str(outcome.trainings)),
        ("kills", str(sum(outcome.kills.values()))),
        *((f"  {kind}", str(count)) for kind, count in sorted(outcome.kills.items())),
        ("starts after a fall", str(outcome.restarts)),
        ("webhooks sent / dropped", f"{hooks['sent']} / {hooks.get('dropped', 0)}"),
        ("  doubled / delayed", f"{hooks.get('doubled', 0)} / {hooks.get('delayed', 0)}"),
        ("  not taken, the backend being down", str(hooks.get("not taken", 0))),
        ("annotations told of by webhook", str(outcome.by_webhook)),
        ("annotations found by reconcile", str(outcome.by_reconcile)),
        ("answers to annotators lost", f"{deeds['lost answers']}, {deeds['found kept']} of them kept all the same"),
        ("submits refused", f"{len(outcome.refused)} {'; '.join(sorted(set(outcome.refused))[:2])}".strip()),
        ("tasks Label Studio miscounts", str(outcome.miscounted)),
        ("labels left out of a training", f"{outcome.left_out} (image not to be had at that moment)"),
        ("killed trainings taken over", str(len(outcome.takeovers))),
        ("  longest wait for it", f"{max(outcome.takeovers):.1f} s" if outcome.takeovers else "–"),
        *((f"slowest {kind}", f"{seconds:.2f} s") for kind, seconds in sorted(outcome.slowest.items())),
        ("labelling took", f"{outcome.labelling_seconds:.0f} s"),
        ("at rest and agreed after", f"{outcome.settle_seconds:.0f} s" if outcome.settle_seconds else "never"),
    ]
    width = max(len(name) for name, _ in rows)
    lines = [f"{name:<{width}}  {value}" for name, value in rows]
    return "\n".join(["", *lines, "", *map(str, outcome.checks), ""])

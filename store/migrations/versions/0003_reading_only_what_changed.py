"""Up to when Label Studio was read, and room for its largest ids"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

IDS = {"project": ["studio_id"], "task": ["studio_id"], "label": ["annotation_id", "annotator"]}


def upgrade() -> None:
    _ids_become(sa.BigInteger())
    op.add_column("project", sa.Column("read_until", sa.DateTime(timezone=True), nullable=True))
    op.add_column("project", sa.Column("read_wholly_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("round", sa.Column("needs", sa.Integer(), nullable=True))
    op.create_index("ix_label_draw_id", "label", ["draw_id"])


def downgrade() -> None:
    op.drop_index("ix_label_draw_id", "label")
    op.drop_column("round", "needs")
    op.drop_column("project", "read_wholly_at")
    op.drop_column("project", "read_until")
    _ids_become(sa.Integer())


def _ids_become(kind: sa.types.TypeEngine[int]) -> None:
    """SQLite's whole numbers have room for them as they are."""
    if op.get_bind().dialect.name != "sqlite":
        for table, columns in IDS.items():
            for column in columns:
                op.alter_column(table, column, type_=kind)

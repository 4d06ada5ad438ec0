"""Subsets of tasks that came with a label"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "subset",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("rule", sa.String(), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("auto", sa.Boolean(), nullable=False),
        sa.Column("seed_size", sa.Integer(), nullable=False),
        sa.Column("k", sa.Integer(), nullable=False),
        sa.Column("cap", sa.Double(), nullable=False),
        sa.Column("floor", sa.Double(), nullable=False),
        sa.Column("sharpness", sa.Double(), nullable=False),
        sa.Column("reviewed_round", sa.Integer(), nullable=True),
        sa.Column("published_round", sa.Integer(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("project_id", "name"),
    )
    op.create_table(
        "doubt",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("subset_id", sa.Integer(), nullable=False),
        sa.Column("task_id", sa.Integer(), nullable=False),
        sa.Column("class_name", sa.String(), nullable=False),
        sa.Column("suggested", sa.String(), nullable=False),
        sa.Column("improbability", sa.Double(), nullable=False),
        sa.Column("disagreement", sa.Double(), nullable=False),
        sa.Column("withdrawn", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["subset_id"], ["subset.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["task_id"], ["task.id"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("subset_id", "task_id"),
    )
    with op.batch_alter_table("project") as table:
        table.add_column(sa.Column("mode", sa.String(length=8), nullable=False, server_default="ent"))
    with op.batch_alter_table("label") as table:
        table.add_column(sa.Column("imported", sa.Boolean(), nullable=False, server_default=sa.false()))
    with op.batch_alter_table("model") as table:
        table.add_column(sa.Column("subset_id", sa.Integer(), nullable=True))
        table.add_column(sa.Column("twin", sa.Boolean(), nullable=False, server_default=sa.false()))
        table.create_foreign_key("fk_model_subset", "subset", ["subset_id"], ["id"], ondelete="CASCADE")
    with op.batch_alter_table("round", naming_convention=NAMES) as table:
        table.add_column(sa.Column("subset_id", sa.Integer(), nullable=True))
        table.add_column(sa.Column("twins", sa.Boolean(), nullable=False, server_default=sa.false()))
        table.add_column(sa.Column("f_trained_at", sa.DateTime(timezone=True), nullable=True))
        table.add_column(sa.Column("g_trained_at", sa.DateTime(timezone=True), nullable=True))
        table.create_foreign_key("fk_round_subset", "subset", ["subset_id"], ["id"], ondelete="CASCADE")
        table.drop_constraint("round_project_id_number_key", type_="unique")
    op.execute("UPDATE round SET f_trained_at = trained_at")
    op.create_index(
        "uq_round_number", "round", ["project_id", sa.text("coalesce(subset_id, 0)"), "number"], unique=True
    )


NAMES = {"uq": "%(table_name)s_%(column_0_N_name)s_key"}
"""What PostgreSQL calls constraints that were given no name; in SQLite they have none and are found by this."""


def downgrade() -> None:
    op.drop_index("uq_round_number", "round")
    op.execute("DELETE FROM round WHERE subset_id IS NOT NULL")
    op.execute("DELETE FROM model WHERE subset_id IS NOT NULL")
    with op.batch_alter_table("round") as table:
        table.create_unique_constraint("round_project_id_number_key", ["project_id", "number"])
        table.drop_constraint("fk_round_subset", type_="foreignkey")
        for column in ("g_trained_at", "f_trained_at", "twins", "subset_id"):
            table.drop_column(column)
    with op.batch_alter_table("model") as table:
        table.drop_constraint("fk_model_subset", type_="foreignkey")
        table.drop_column("twin")
        table.drop_column("subset_id")
    with op.batch_alter_table("label") as table:
        table.drop_column("imported")
    with op.batch_alter_table("project") as table:
        table.drop_column("mode")
    op.drop_table("doubt")
    op.drop_table("subset")

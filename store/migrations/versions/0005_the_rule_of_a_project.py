"""The rule by which annotators are asked is the project's choice"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    with op.batch_alter_table("project") as table:
        table.add_column(sa.Column("rule", sa.String(length=8), nullable=False, server_default="ent"))


def downgrade() -> None:
    with op.batch_alter_table("project") as table:
        table.drop_column("rule")

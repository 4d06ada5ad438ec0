"""What the drawing model expected of the pool and of each task it asked for"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.add_column("round", sa.Column("expected", sa.JSON(), nullable=True))
    op.add_column("draw", sa.Column("beliefs", sa.LargeBinary(), nullable=True))


def downgrade() -> None:
    op.drop_column("draw", "beliefs")
    op.drop_column("round", "expected")

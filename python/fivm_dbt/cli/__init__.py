"""The command ``fivm`` has the commands explain, plan, replay, doctor, init, jars and error."""

from __future__ import annotations

from fivm_dbt.cli.environment import doctor, init, jars
from fivm_dbt.cli.errors import error
from fivm_dbt.cli.explain import explain as _explain
from fivm_dbt.cli.group import main
from fivm_dbt.cli.plan import plan as _plan
from fivm_dbt.cli.replay import replay as _replay

__all__ = ["main"]

for _command in (_explain, _plan, _replay, doctor, init, jars, error):
    main.add_command(_command)

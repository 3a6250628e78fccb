"""The same project on Airflow with a task for each model, by Cosmos.

Inner views of fivm are nodes of dbt that no command runs: their tag leaves them out, so that none becomes a task. Each
task is a dbt process of its own, with its own session of Spark. So this is for a Spark that runs already, or for few
models.
"""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

from cosmos import DbtDag, ExecutionConfig, ProfileConfig, ProjectConfig, RenderConfig
from cosmos.constants import LoadMode, TestBehavior

PROJECT = Path(os.environ["SHOP_PROJECT"])
DBT = os.environ.get("SHOP_DBT", "dbt")

shop_by_model = DbtDag(
    dag_id="shop_by_model",
    schedule=None,
    start_date=datetime(2026, 1, 1),
    max_active_tasks=1,  # a local Spark has one metastore, which one process may open
    project_config=ProjectConfig(PROJECT, install_dbt_deps=False),
    profile_config=ProfileConfig(
        profile_name=os.environ.get("SHOP_PROFILE", "shop"),
        target_name=os.environ.get("SHOP_TARGET", "local"),
        profiles_yml_filepath=PROJECT / "profiles.yml",
    ),
    execution_config=ExecutionConfig(dbt_executable_path=DBT),
    render_config=RenderConfig(
        load_method=LoadMode.DBT_LS, exclude=["tag:fivm_inner_view"], test_behavior=TestBehavior.AFTER_ALL
    ),
)

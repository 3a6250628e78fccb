"""A dbt project whose Spark has its executors in other processes: ``python project_on_cluster.py DIRECTORY MASTER``.

Prints what was seen as JSON: in each step the actions, whether all is as recomputed, and of which models it is known
what was read.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from dbt_project import Project
from everyday import change, inner_views, is_exact, with_inner_view
from fivm_dbt.engines.spark.session import local_session


def main(directory: str, master: str) -> None:
    settings = {
        "spark.master": master,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "1g",
        "spark.executor.cores": "1",
    }
    session = local_session(Path(directory) / "spark", settings=settings)
    shop = Project.create(session, Path(directory) / "shop", "on_cluster")
    with_inner_view(shop)
    seen = []
    for step in (lambda: None, lambda: change(shop), lambda: None):
        step()
        run = shop.dbt("build")
        told = {m: run.figures(m)["rows_read"] is not None for m in run.actions()}
        seen.append({"actions": run.actions(), "exact": is_exact(shop), "told": told})
    executors = session.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1
    print(json.dumps({"steps": seen, "executors": executors, "inner_views": inner_views(shop)}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Relations of a project may not have the names of fivm's own tables, which would be written over."""

from __future__ import annotations

from dbt_common.exceptions import CompilationError

from fivm_dbt.errors import FivmError
from fivm_dbt.naming import canonical, kept_under, owner_of
from fivm_dbt.project.manifest import Nodes, kept_in


def check_names(nodes: Nodes) -> None:
    """Raise dbt's error for a model, seed or snapshot whose relation is, or may become, one of fivm's."""
    owners = {kept_under(m.relation_name, kept_in(m)): m for m in nodes.fivm_models()}
    for node in nodes.written():
        name = canonical(node.relation_name)
        owner = next((m for relation, m in owners.items() if owner_of(name, relation)), None)
        if owner is None:
            continue
        error = FivmError(
            "FIVM207",
            f"the {node.resource_type} {node.name} is {name}, under which name fivm model {owner.name} "
            "keeps its states",
            remedy=f"rename {node.name}, or give it another alias or schema",
        )
        raise CompilationError(str(error))

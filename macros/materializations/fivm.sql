{#
  Keeps a model equal to its full recompute by applying what changed in its inputs. Python plans and applies
  (adapter.fivm_refresh); the order of the rest is in _fivm_materialize.
#}
{% materialization fivm, adapter='spark' %}
  {{ return(fivm._fivm_materialize('fivm')) }}
{% endmaterialization %}

{#
  A model of time parts: the file is UPDATE for part j, over parts of its inputs and earlier ones of itself
  (fivm.part, fivm.span), and INITIALIZE stands in a call of fivm.initialize.
#}
{% materialization viewdf, adapter='spark' %}
  {{ return(fivm._fivm_materialize('viewdf')) }}
{% endmaterialization %}

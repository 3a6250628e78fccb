{# A linear regression, trained from the moments of its query: a fivm_covariance(...). #}
{% materialization fivm_regression, adapter='spark' %}
  {{ return(fivm._fivm_learn('fivm_regression')) }}
{% endmaterialization %}

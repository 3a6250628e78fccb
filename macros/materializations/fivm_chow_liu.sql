{# The tree of the categorical variables of a fivm_covariance(...) that tells most of them. #}
{% materialization fivm_chow_liu, adapter='spark' %}
  {{ return(fivm._fivm_learn('fivm_chow_liu')) }}
{% endmaterialization %}

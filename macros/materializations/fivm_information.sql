{# Mutual information of the categorical variables of a fivm_covariance(...). #}
{% materialization fivm_information, adapter='spark' %}
  {{ return(fivm._fivm_learn('fivm_information')) }}
{% endmaterialization %}

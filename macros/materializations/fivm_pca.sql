{# Principal components of the continuous variables of a fivm_covariance(...). #}
{% materialization fivm_pca, adapter='spark' %}
  {{ return(fivm._fivm_learn('fivm_pca')) }}
{% endmaterialization %}

{#
  Models that are trained from the moments of their query, a fivm_covariance(...): a linear regression, principal
  components, mutual information of categorical variables, and the tree of them that tells most of it.
#}
{% materialization fivm_regression, adapter='spark' %}
  {{ return(fivm._fivm_learn('fivm_regression')) }}
{% endmaterialization %}

{% materialization fivm_information, adapter='spark' %}
  {{ return(fivm._fivm_learn('fivm_information')) }}
{% endmaterialization %}

{% materialization fivm_pca, adapter='spark' %}
  {{ return(fivm._fivm_learn('fivm_pca')) }}
{% endmaterialization %}

{% materialization fivm_chow_liu, adapter='spark' %}
  {{ return(fivm._fivm_learn('fivm_chow_liu')) }}
{% endmaterialization %}

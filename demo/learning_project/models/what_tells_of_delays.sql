{{ config(materialized='fivm_information', meta={'fivm_label': 'arrival'}) }}

select m from {{ ref('flight_moments') }}

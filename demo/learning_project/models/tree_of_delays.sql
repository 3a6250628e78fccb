{{ config(materialized='fivm_chow_liu', meta={'fivm_root': 'arrival'}) }}

select m from {{ ref('flight_moments') }}

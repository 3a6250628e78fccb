{{ config(materialized='table', file_format='delta') }}
select customer_id, upper(segment) as segment, country from {{ source('raw', 'customers') }}

{{ config(materialized='ephemeral') }}
select order_id, amount from {{ source('raw', 'orders') }}

{{ config(
    materialized='fivm_regression',
    meta={
        'fivm_label': 'arr_delay',
        'fivm_features': ['distance', 'hour', 'temp', 'wind_speed', 'precip', 'visib', 'seats', 'built', 'carrier', 'origin'],
    },
) }}

select m from {{ ref('flight_moments') }}

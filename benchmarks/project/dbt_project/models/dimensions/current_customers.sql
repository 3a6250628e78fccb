select customer_id, status, last_name, first_name, tier, city, country, national_rate, local_rate, agency_id, effective_from
from {{ ref('dim_customers') }}
where is_current

select account_id, customer_id, broker_id, name, tax_status, status
from {{ ref('account_versions') }}
where is_current

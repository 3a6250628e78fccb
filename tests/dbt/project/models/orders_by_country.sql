select k.country_name, count(*) as orders
from {{ source('raw', 'orders') }} o
join {{ ref('customers') }} c on o.customer_id = c.customer_id
join {{ ref('countries') }} k on c.country = k.country
group by k.country_name

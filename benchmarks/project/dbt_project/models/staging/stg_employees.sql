select
    employee_id,
    manager_id,
    concat_ws(' ', first_name, last_name) as full_name,
    job_code,
    branch,
    office
from {{ source('raw', 'employees') }}

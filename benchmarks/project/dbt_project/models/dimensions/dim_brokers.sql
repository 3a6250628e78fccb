select
    b.employee_id as broker_id,
    b.full_name as broker,
    b.branch,
    b.office,
    m.full_name as manager
from {{ ref('stg_employees') }} as b
left join {{ ref('stg_employees') }} as m on b.manager_id = m.employee_id
where b.job_code = 314

"""Queries whose answer over a table must be the answer over the Parquet copy; ``{t}`` is either."""

from __future__ import annotations

FILTERS = """
id = 7
id <> 7
id < 20
id <= 20
id > 390
id >= 390
id between 100 and 120
id not between 5 and 395
id in (1, 2, 3, 1000)
id in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16)
id not in (1, 2, 3)
id in (1, null)
id not in (1, null)
id = 7.0
id > 7.5
id < '9'
id = -1
id = 9223372036854775807
id is null
id is not null
status = 500
status <> 500
status is null
status is not null
status <=> null
status <=> 500
not (status <=> 500)
not status = 500
status = 500 or status is null
status in (200, 404) and id < 30
status + 1 = 501
status % 2 = 0 and id < 50
small = -50
small < -40
small = 40000
cast(small as string) = '7'
ratio = 0.0
ratio = -0.0
ratio > 0
ratio < 0
ratio = double('NaN')
ratio <> double('NaN')
ratio > double('Infinity')
ratio >= double('Infinity')
ratio < double('-Infinity')
ratio is null
isnan(ratio)
ratio in (0.0, 1.25)
ratio between 1 and 20
price = 1.25
price > 50
price < -2.5
price = 1.2500
price in (0.00, 0.25, 99)
price is null
price between -1 and 1
host = 'web-03'
host <> 'web-03'
host < 'web-03'
host >= 'web-09'
host like 'web-0%'
host like '%-03'
host like '%b-0%'
host like 'web-_3'
host not like 'web-0%'
host like 'web-03'
host like 'w%3'
host ilike 'WEB-03'
host rlike '0[1-3]$'
host in ('web-01', 'web-02', 'nope')
host is null
host = ''
upper(host) = 'WEB-03'
length(host) = 6 and id < 40
substring(host, 5, 2) = '03'
concat(host, 'x') = 'web-03x'
startswith(host, 'web-1')
endswith(host, '0')
contains(host, '-0')
host = concat('web', '-03')
coalesce(host, 'none') = 'none'
host = 'web-03' and status = 500
host = 'web-03' or status = 500
not (host = 'web-03' or status = 500)
not (host = 'web-03' and status = 500)
(host = 'web-03' or id < 10) and (status = 200 or ok)
host = 'web-03' or (status = 500 and not ok)
ok
not ok
ok = true
ok = false
ok is null
ok and status = 200
day = date'2024-01-05'
day > date'2024-02-20'
day < '2024-01-03'
day between '2024-01-10' and '2024-01-12'
day is null
year(day) = 2024 and month(day) = 2
day in (date'2024-01-01', date'2024-01-02')
at = timestamp'2024-01-01 12:07:00.123456'
at > timestamp'2024-01-01 18:00:00'
at < '2024-01-01 12:10:00'
cast(at as date) = '2024-01-01' and id < 20
date_trunc('hour', at) = timestamp'2024-01-01 13:00:00'
at is null
at between timestamp'2024-01-01 12:10:00' and timestamp'2024-01-01 12:20:00'
local = timestamp_ntz'2024-01-01 15:00:00.123456'
local > timestamp_ntz'2024-01-17 00:00:00'
raw = X'0507'
raw > X'F007'
raw is null
who.name = 'u1'
who.name <> 'u1'
who.age > 80
who.age is null
who is null
who.name = 'u1' and who.age < 20
who.name in ('u2', 'u3') or id = 5
who = named_struct('name', 'u1', 'age', 1)
tags[0] = 't1'
array_contains(tags, 't2') and id < 100
size(tags) = 3 and id < 50
tags is null
attrs['k'] = 12
attrs['k1'] is null and id < 20
map_contains_key(attrs, 'k0') and id < 60
part = 'a'
part = 'c d'
part <> 'a'
part is null
part is not null
part in ('a', 'c d')
part = 'a' and id < 10
part = 'a' or id > 395
part is null or status = 404
part = 'b' and (host = 'web-01' or status is null)
part > 'a'
part like 'c%'
part = 'A'
message = 'disk full 3'
message like '%timeout%'
message like 'disk%' and status = 500
message is null
id = small
id > small and id < 30
id < length(message)
case when status = 500 then ok else id < 10 end
if(ok, id < 30, id > 380)
true
false
cast(null as boolean)
1 = 0
id < 10 and rand() >= 0
""".strip().splitlines()

QUERIES = """
select count(*) from {t}
select count(*) from {t} where part = 'a'
select count(*) from {t} where part = 'a' and id < 50
select count(status), count(host), count(*) from {t}
select count(distinct status) from {t}
select min(id), max(id), sum(id), avg(id) from {t}
select min(status), max(status), sum(status), avg(status) from {t} where part = 'b'
select min(ratio), max(ratio) from {t}
select sum(price), avg(price), min(price), max(price) from {t}
select min(host), max(host), min(day), max(day), min(at), max(at) from {t}
select min(ok), max(ok) from {t}
select sum(id) from {t} where id < 0
select count(*) from {t} where id < 0
select status, count(*) from {t} group by status
select status, ok, sum(id), min(host) from {t} group by status, ok
select part, count(*) from {t} group by part
select part, count(*), max(id) from {t} where status = 500 group by part
select part, status, avg(ratio) from {t} where not isnan(ratio) group by part, status
select day, count(*) from {t} where day < '2024-01-10' group by day
select host, count(*) c from {t} group by host having count(*) > 30
select who.name, count(*) from {t} group by who.name
select upper(host), count(*) from {t} group by upper(host)
select distinct part from {t}
select distinct status, ok from {t}
select price, count(*) from {t} group by price having price > 90
select id from {t} order by id limit 5
select id from {t} where status = 500 order by id desc limit 7
select id, host from {t} where part = 'a' order by host nulls last, id limit 10
select count(*) from (select * from {t} limit 17)
select count(*) from (select * from {t} where status = 404 limit 17)
select who.age from {t} where who.name = 'u2'
select who from {t} where id < 5
select tags, attrs from {t} where id < 9
select raw, local, at from {t} where id < 9
select id, ratio, price from {t} where id < 40
select 1 from {t} where id < 3
select a.id, b.id from {t} a join {t} b on a.id = b.id + 1 where a.id < 10
select a.id, b.host from {t} a left join {t} b on a.id = b.id and b.status = 500 where a.id < 30
select a.id from {t} a left semi join {t} b on a.id = b.id and b.part = 'a'
select a.id from {t} a left anti join {t} b on a.id = b.id and b.id > 20 where a.id < 40
select count(*) from {t} a, {t} b where a.id = 3 and b.status = 500
select id from {t} where id in (select id from {t} where status = 500 and id < 50)
select id from {t} where exists (select 1 from {t} x where x.id = 3) and id < 4
select id, (select count(*) from {t}) n from {t} where id = 1
select id, (select max(id) from {t} where part = 'a') m from {t} where id < 3
select id from {t} where id > (select avg(id) from {t}) and id < 210
with x as (select * from {t} where status = 500) select count(*) from x
with x as (select * from {t} where id < 50) select a.id from x a join x b on a.id = b.id where b.ok
with x as (select id, status from {t}) select count(*) from x where id = 1 union all select 2
select * from {t} where id = 1 union all select * from {t} where id = 2
select id from {t} where id = 1 union all select id from {t}
select id from {t} where id < 10 except select id from {t} where id < 5
select id from {t} where id < 10 intersect select id from {t} where status = 200
select host, row_number() over (partition by status order by id) r from {t} where id < 30
select status, sum(sum(id)) over () from {t} group by status
select grouping(status), status, count(*) from {t} group by rollup(status)
select sum(case when ok then 1 else 0 end) from {t}
select sum(id) filter (where ok), count(*) filter (where status = 500) from {t}
select explode(tags) from {t} where id < 5
select id + 1 as x from {t} where id + 1 < 5
select max(struct(id, host)) from {t}
select count(*), count(part) from {t} where part is null
select percentile(id, 0.5) from {t}
select avg(small), sum(small) from {t}
select collect_set(status) from {t} where id < 3
select max(length(message)) from {t}
""".strip().splitlines()

TEXT = (
    ("message TEXTSEARCH 'timeout'", lambda w: "timeout" in w),
    ("message textsearch 'Timeout'", lambda w: "timeout" in w),
    ("message TEXTSEARCH 'timeout db'", lambda w: "timeout" in w and "db" in w),
    ("message TEXTSEARCH 'timeout AND db'", lambda w: "timeout" in w and "db" in w),
    ("message TEXTSEARCH 'timeout OR disk'", lambda w: "timeout" in w or "disk" in w),
    ("message TEXTSEARCH 'timeout NOT db'", lambda w: "timeout" in w and "db" not in w),
    ("message TEXTSEARCH '\"db pool\"'", lambda w: "db pool" in " ".join(w)),
    ("message TEXTSEARCH 'nothing'", lambda w: False),
    ("message TEXTSEARCH '(disk OR login) AND full'", lambda w: "disk" in w and "full" in w),
    ("message TEXTSEARCH 'tim*'", lambda w: any(x.startswith("tim") for x in w)),
    ("textsearch(message, 'failed')", lambda w: "failed" in w),
    ("indexquery(message, 'failed')", lambda w: "failed" in w),
    ("message INDEXQUERY 'message:disk'", lambda w: "disk" in w),
    ("tantivy4spark_textsearch(message, 'failed')", lambda w: "failed" in w),
    ("message NOT TEXTSEARCH 'timeout'", lambda w: "timeout" not in w),
    ("NOT message TEXTSEARCH 'timeout'", lambda w: "timeout" not in w),
)

-- numbers against literals
i = 1
i = 1.0
i = 1.5
i <> 1.5
i < 0.5
i > -0.5
i >= 2147483647
i > 3000000000
i < 3000000000
i = '7'
i = ' 7 '
i = '1.5'
i = 'x'
i IN (1, 7, NULL)
i NOT IN (1, 7, NULL)
i NOT IN (1, 7)
i IN (1, 1.5, 7)
i IN ('1', '7')
i <=> NULL
i <=> 1
NOT (i <=> 1)
NOT (i = 1)
i = NULL
l = 9007199254740993
l > 1e18
l = 10D
l < -5.5
l IN (10, 3000000000000)
d = 0
d = -0.0D
d > 1
d >= double('NaN')
d = double('NaN')
d < double('NaN')
d <> double('NaN')
d > double('inf')
d <= double('inf')
d IN (1.5, double('NaN'))
NOT (d > 1)
d = '1.5'
d = 'abc'
d = 1.5
d = 9007199254740993
r = 1.1
r = 1.1F
r = float(1.1)
r > 1.1
r = 2.5
r = '2.5'
r = 16777217
r >= double('NaN')
dec = 0.1
dec = 0.1D
dec = 0.1000
dec = 1.005
dec < 1.005
dec > 1.005
dec <> 1.005
dec > 9
dec = '9.5'
dec < '10'
dec = 9.5D
dec IN (0.1, 9.50, 3)
dec > 1e10
-- strings
s = 'abc'
s < 'b'
s > 'zzz'
s = ''
s LIKE 'a_c'
s LIKE 'a\_c'
s LIKE 'a\%c'
s LIKE 'a%c'
s LIKE '%c'
s LIKE '%b%'
s LIKE 'a!_c' ESCAPE '!'
s LIKE 'abc\\'
s LIKE 'a\bc'
s LIKE '%'
s LIKE ''
s LIKE '__'
s NOT LIKE 'a%'
s ILIKE 'aBc'
s ILIKE '%SS%'
s RLIKE 'a.c'
s RLIKE '^a'
s RLIKE 'c$'
s RLIKE '[a-c]{3}'
s RLIKE '(?i)^ABC$'
s RLIKE '\\s'
startswith(s, 'a')
endswith(s, 'c')
contains(s, '_')
startswith(s, '')
s IN ('abc', 'ABC', NULL)
s NOT IN ('abc')
s = 'it''s'
s = 'ABC' OR s IS NULL
lower(s) = 'abc'
upper(s) = 'STRASSE'
length(s) = 3
length(s) = 2
trim(s) = 'x'
ltrim(s) = 'x '
rtrim(s) = ' x'
substring(s, 2, 1) = 'b'
substring(s, -1, 1) = 'c'
substring(s, -5, 3) = 'a'
substring(s, 0, 2) = 'ab'
substring(s, 2) = 'bc'
concat(s, s) = 'abcabc'
s || 'x' = 'abcx'
coalesce(s, 'none') = 'none'
nullif(s, 'abc') IS NULL
num = 7
num = 12
num > 3
num = 7.0
num = 1.5
num IN (7, 12)
cast(num AS INT) = 7
try_cast(num AS INT) IS NULL
cast(num AS BIGINT) = 2147483648
cast(num AS DOUBLE) = 12
cast(num AS DECIMAL(12,1)) = 12.0
cast(s AS INT) = 1
try_cast(s AS INT) IS NULL
s = 1
id = 1 AND num = 7
id = 1 AND s = 1
id <> 1 OR s = 1
-- booleans
b
NOT b
b = true
b <> true
b IS TRUE
b IS NOT TRUE
b <=> NULL
b = 'yes'
b = 'maybe'
b = 1
b < true
b IN (true)
(i = 1) = b
-- dates and times
dt = '2024-01-01'
dt = '2024-1-1'
dt = '2024'
dt = '2024-01'
dt = 'x'
dt = DATE '1969-12-31'
dt < DATE '1970-01-01'
dt < TIMESTAMP '2024-01-01 12:00:00'
dt = TIMESTAMP '2024-01-01 00:00:00'
dt >= TIMESTAMP '2023-12-31 00:00:01'
dt = TIMESTAMP_NTZ '2024-01-01 00:00:00'
dt > TIMESTAMP_NTZ '2024-01-01 00:00:00.000001'
dt IN ('2024-01-01', '2024-02-29')
dt > 5
ts = '2024-01-01 00:00:00'
ts >= '2024-01-01'
ts < DATE '2024-01-01'
ts = TIMESTAMP '2024-03-10 02:30:00.123456'
ts = TIMESTAMP '2024-11-03 01:30:00'
ts >= '2024-03-10T07:30:00Z'
ts = '2024-01-01 00:00:00.000001'
ts = '2024-01-01 00:00:00.0000019'
ts = '1850-06-01 00:00:00Z'
ts < '1850-06-01'
ts >= '2024-01-01 10'
ts >= '2024-01-01 10:30'
ts >= '2024'
ts > 5
ts BETWEEN '2024-01-01' AND '2024-06-30 23:59:59'
ts >= TIMESTAMP_NTZ '2024-01-01 00:00:00'
n = '2024-01-01 05:00:00'
n = '2024-01-01 05:00:00Z'
n >= DATE '2024-01-01'
n < TIMESTAMP '2024-01-01 00:00:00'
n = ts
dt = cast(ts AS DATE)
dt < ts
dt = n
cast(ts AS DATE) = DATE '2024-01-01'
to_date(ts) = '2024-11-03'
cast(ts AS TIMESTAMP_NTZ) = n
cast(n AS TIMESTAMP) = ts
cast(ts AS STRING) = '2024-11-03 01:30:00'
cast(dt AS STRING) LIKE '2024%'
cast(dt AS TIMESTAMP) = '2024-01-01'
cast(n AS STRING) = '2024-03-10 07:30:00.123456'
year(ts) = 2024
year(dt) = 2024
month(dt) = 2
day(ts) = 1
day(n) = 1
quarter(dt) = 3
hour(ts) = 1
hour(n) = 5
minute(ts) = 30
second(ts) = 9
date_trunc('day', ts) = '2024-11-03'
date_trunc('month', ts) = '2024-01-01'
date_trunc('week', dt) = '2024-01-01'
date_trunc('year', n) = '2024-01-01'
date_trunc('hour', ts) = '2024-11-03 01:00:00'
date_trunc('quarter', ts) = '2024-07-01'
ts > TIMESTAMP '2024-01-01 00:00:00' - INTERVAL 1 DAY
ts > TIMESTAMP '2024-03-11 02:30:00' - INTERVAL 1 DAY
dt = DATE '2024-03-31' - INTERVAL 1 MONTH
ts >= DATE '2024-01-01' + INTERVAL 5 HOURS
-- binary and struct
bin = X'616263'
bin > X'7F'
bin = 'abc'
bin IN (X'00', X'80')
length(bin) = 3
st.x = 1
st.X > 1
st.y = 'p'
st.y LIKE 'p%'
st.x IS NULL
st IS NULL
st.y IS NOT NULL AND st.x IS NULL
-- columns, arithmetic, case
i = l
i < l
d = l
d > i
r = d
dec = i
dec > i
dec = d
s = num
num = i
i + 1 = 8
i + 1 > 0
i - 1 = 0
-i = 7
abs(i) = 7
l * 2 = 20
i % 3 = 1
i % 3 = -1
i % 0 = 1
i div 2 = 3
i div 2 = -3
i / 2 = 3.5
i / 2 > 1e6
d / 2 = 0.75
d + 1 > 2
d * 2 = 3
d % 2 = -1.25
i / 0 = 1
id = 6 AND i / 2 = 3.5
CASE WHEN i > 5 THEN 'big' WHEN i < 0 THEN 'neg' ELSE 'mid' END = 'mid'
CASE WHEN i > 5 THEN 1 END IS NULL
CASE i WHEN 1 THEN true WHEN 7 THEN false END
if(b, i, l) = 7
if(i = 0, false, 10 / i > 1)
coalesce(i, 0) = 0
coalesce(i, l, 5) = 5
coalesce(b, false)
nvl(i, -99) = -99
isnan(d)
NOT isnan(d)
isnull(i)
isnotnull(d) AND d < 0
cast(i AS STRING) = '7'
cast(i AS DOUBLE) = 7
cast(l AS DOUBLE) = 9007199254740992D
cast(l AS INT) = 7
try_cast(l AS INT) IS NULL
cast(d AS INT) = 1
try_cast(d AS INT) = -7
cast(dec AS INT) = 9
cast(dec AS DOUBLE) = 0.1D
cast(dec AS STRING) = '9.50'
cast(i AS DECIMAL(12,2)) = 7.00
cast(b AS INT) = 1
cast(b AS STRING) = 'true'
-- logic
NOT (i = 1 AND s = 'abc')
NOT (i = 1 OR s = 'ABC')
i = 1 OR NULL
i = 1 AND NULL
NOT (i = 1 AND NULL)
i BETWEEN 1 AND 7
i NOT BETWEEN 1 AND 7
i IN (1, 2) AND i IN (1, 3)
i IS NOT NULL AND i = 1
(i > 1) = true
(i > 1) <=> false
NOT ((i > 1) <=> true)
i > 1 IS NULL
1 = 1
1 = 2
1 IN (1, 2)
'a' < 'b'
i IS DISTINCT FROM 1
i IS NOT DISTINCT FROM NULL
s LIKE ANY ('a%', '%x%')
s LIKE ALL ('a%', '%c')
s NOT LIKE ANY ('a%', '%x%')
s NOT LIKE ALL ('a%', '%x%')
s NOT ILIKE 'A%'
s NOT RLIKE '^a'
l % 3 = 1
d % 0 = 1
l - 9223372036854775807 = 0
-l > 0
abs(l) = 8
i * 2 = 14
d - d = 0
cast(r AS DOUBLE) = 1.1D
cast(i AS FLOAT) = 7
substring(s, 1, 0) = ''
substring(s, 100) = ''
lower('ABC') = s
concat(s, NULL) IS NULL
CASE WHEN s LIKE 'a%' THEN length(s) ELSE -1 END > 2
try_cast(num AS BIGINT) = 2147483648
cast('12' AS INT) = cast(num AS BIGINT)
dt + INTERVAL 1 DAY = DATE '2024-01-02'
ts = TIMESTAMP '2024-11-03 02:30:00' - INTERVAL 1 HOUR
dt > DATE '2024-01-31' + INTERVAL 1 MONTH
date_trunc('minute', ts) = '2024-07-14 09:05:00'
hour(ts) IN (0, 5)
cast(ts AS DATE) <> dt
s RLIKE 'a|z$'
s RLIKE ''
s RLIKE '\d+'
s RLIKE '[^a-z]'
s = "ABC"
s IN (SELECT 'abc')
i IN (l, 1)
l = 9007199254740992D
dec = 1.500
dec BETWEEN 0.1 AND 1.5
s BETWEEN 'A' AND 'b'
bin BETWEEN X'61' AND X'7A'
d IN (0, 1.5)
-0.0D = d
r IN (1.1F, 2.5F)
i <> 1 AND i <> 7
st.x IN (1, 3)
st.x <=> NULL
NOT (st.y <=> 'p')
NOT (s LIKE '%c' AND b)
NOT (b OR i > 0)
-- dates and timestamps moved by intervals
dt - INTERVAL '1' MONTH = DATE '2024-01-29'
dt + INTERVAL '1' YEAR > DATE '2024-12-31'
dt + INTERVAL 2 HOURS > TIMESTAMP '2024-01-01 01:00:00'
dt + INTERVAL '24' HOUR = TIMESTAMP '2024-01-02 00:00:00'
dt + 1 = DATE '2024-01-02'
dt - 1 = DATE '2023-12-31'
date_add(dt, 31) = DATE '2024-02-01'
date_sub(dt, 1) > DATE '2024-01-01'
add_months(dt, 12) = DATE '2025-02-28'
add_months(dt, -1) = DATE '2024-01-29'
datediff(dt, DATE '2024-01-01') BETWEEN -1 AND 60
datediff(ts, dt) = 0
ts + INTERVAL '1' DAY > TIMESTAMP '2024-11-04 00:00:00'
ts + INTERVAL '24' HOUR = TIMESTAMP '2024-03-11 03:30:00.123456'
ts + INTERVAL '1' HOUR = TIMESTAMP '2024-11-03 01:30:00'
ts - INTERVAL '1' DAY = TIMESTAMP '2024-11-02 01:30:00'
ts + INTERVAL '25' HOUR = TIMESTAMP '2024-11-04 02:30:00'
ts - INTERVAL '1' MONTH < TIMESTAMP '2024-01-01 00:00:00'
ts + INTERVAL 8 MONTHS = TIMESTAMP '2024-11-10 03:30:00.123456'
ts - INTERVAL '1 02:30:00' DAY TO SECOND < TIMESTAMP '2023-12-31 00:00:00'
ts + INTERVAL '1-6' YEAR TO MONTH > TIMESTAMP '2025-08-01 00:00:00'
ts + INTERVAL '1 day 2 hours' > TIMESTAMP '2024-11-04 03:00:00'
ts > n - INTERVAL '90' MINUTE
n + INTERVAL '1' WEEK < TIMESTAMP_NTZ '2024-01-09 00:00:00'
n - INTERVAL '0.5' SECOND < TIMESTAMP_NTZ '2023-12-31 23:59:59.6'
ts > TIMESTAMP '2024-03-10 03:30:00' - INTERVAL '24' HOUR
ts >= TIMESTAMP '2024-11-04 01:30:00' - INTERVAL '1' DAY
INTERVAL '1' DAY + dt = DATE '2024-01-02'
-- arrays and maps
array_contains(tags, 'a')
NOT array_contains(tags, 'a')
array_contains(tags, NULL)
array_contains(tags, s)
array_contains(nums, 1)
array_contains(nums, l)
array_contains(nums, 1099511627776)
array_contains(reals, 0)
array_contains(reals, double('NaN'))
array_contains(reals, d)
array_contains(nums, 1.5D)
size(tags) = 2
size(tags) > 0
size(m) = 0
size(m) >= 2
size(tags) IS NULL
cardinality(nums) = 1
array_size(tags) = 1
-- JSON text
get_json_object(js, '$.a.b[0]') = '1'
get_json_object(js, '$.a.b[1]') = '2.5'
get_json_object(js, '$.a.b') = '[1,2.5,"x"]'
get_json_object(js, '$.a.b[0]') = '10'
get_json_object(js, '$.n') IS NULL
get_json_object(js, '$[\'a b\']') = 'true'
get_json_object(js, '$.z') = '0'
get_json_object(js, '$.big') = '123456789012345678901'
get_json_object(js, '$.a') = '1'
get_json_object(js, '$.a') = '5'
get_json_object(js, '$.a') IS NOT NULL
get_json_object(js, '$.b') LIKE 'caf%'
length(get_json_object(js, '$.b')) = 15
get_json_object(js, '$.t') LIKE 'tab_here'
get_json_object(js, '$[0]') = '{"a":1}'
get_json_object(js, '$[1].a') = '1000.0'
get_json_object(js, '$[2].a') = '1.0E-5'
get_json_object(js, '$[3]') = '0.001'
get_json_object(js, '$[4]') = '1234567.5'
get_json_object(js, '$[5]') = '1.23456785E7'
get_json_object(js, '$[6]') IS NULL
get_json_object(js, '$') = 'plain'
get_json_object(js, '$.a.c') = '{"d":"\\u001F/\\b"}'
get_json_object(js, '$.b') = '[[],{},[null]]'
get_json_object(js, '$.b.a[2]') = '3'
get_json_object(js, '$.x') = '1.1'
get_json_object(js, '$.missing') IS NULL
get_json_object(js, '$["it\'s"]') = '1'

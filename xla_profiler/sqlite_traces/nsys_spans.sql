-- Spans of nsys. Of NVTX's events, types 59 and 60 are ranges; one that did not end has no end.
-- Tables and columns in braces may be missing (SqliteFile::Query).
WITH memory(kind, name) AS (VALUES (0, 'Pageable'), (1, 'Pinned'), (2, 'Device'),
                                      (3, 'Array'), (4, 'Managed'), (5, 'Device')),
t AS (SELECT 'kernel' AS category, 1 AS is_device, * FROM {CUPTI_ACTIVITY_KIND_KERNEL: $0}
      UNION ALL SELECT 'gpu_memcpy', 1, * FROM {CUPTI_ACTIVITY_KIND_MEMCPY: $0}
      UNION ALL SELECT 'gpu_memset', 1, * FROM {CUPTI_ACTIVITY_KIND_MEMSET: $0}
      UNION ALL SELECT 'cuda_runtime', 0, * FROM {CUPTI_ACTIVITY_KIND_RUNTIME: $0}
      UNION ALL SELECT 'user_annotation', 0, * FROM {NVTX_EVENTS: $0}
                WHERE eventType IN (59, 60) AND "end" IS NOT NULL)
SELECT t.category,
       coalesce(t.text, s.value, 'Memcpy (' || a.name || ' -> ' || b.name || ')',
                'Memset (' || c.name || ')', t.category),
       t.is_device, coalesce(t.deviceId, t.globalTid >> 24 & 0xffffff),
       coalesce(t.streamId, t.globalTid & 0xffffff), t.start, t."end", t.correlationId,
       t.bytes, t.graphNodeId, coalesce(t.globalTid, t.globalPid) >> 24, t.jsonText,
       t.binaryData, t.domainId
FROM t LEFT JOIN {StringIds: id, value} s
         ON s.id = coalesce(t.demangledName, t.nameId, t.textId)
       LEFT JOIN memory a ON a.kind = t.srcKind LEFT JOIN memory b ON b.kind = t.dstKind
       LEFT JOIN memory c ON c.kind = t.memKind

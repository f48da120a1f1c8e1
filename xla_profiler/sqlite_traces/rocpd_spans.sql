-- Spans of rocpd. Schema 3 has in the row itself what schema 4 has in a, b, k and c.
-- Tables and columns in braces may be missing (SqliteFile::Query).
WITH t AS (SELECT 'kernel' AS category, 1 AS is_device, * FROM {rocpd_kernel_dispatch: $0}
      UNION ALL SELECT 'gpu_memcpy', 1, * FROM {rocpd_memory_copy: $0}
      UNION ALL SELECT 'hip_runtime', 0, * FROM {rocpd_region: $0})
SELECT CASE WHEN coalesce(c.name, d.string) COLLATE NOCASE BETWEEN 'marker' AND 'marker~'
            THEN 'user_annotation' ELSE t.category END,
       coalesce(y.display_name, n.string), t.is_device,
       CASE WHEN NOT t.is_device THEN p.pid
                 WHEN g.type = 'CPU' THEN coalesce(h.type_index, g.type_index)
                 ELSE g.type_index END,
       coalesce(t.stream_id, k.stream_id, t.tid, k.tid), coalesce(t.start, a.value),
       coalesce(t."end", b.value), e.stack_id, t.size, NULL, p.pid, e.extdata, NULL, NULL
FROM t LEFT JOIN {rocpd_timestamp: id, value} a ON a.id = t.start_id
       LEFT JOIN {rocpd_timestamp: id, value} b ON b.id = t.end_id
       LEFT JOIN {rocpd_track: id, agent_id, stream_id, tid} k ON k.id = t.track_id
       LEFT JOIN {rocpd_event: id, category_id, stack_id, extdata} e ON e.id = t.event_id
       LEFT JOIN {rocpd_info_category: id, name} c ON c.id = e.category_id
       LEFT JOIN {rocpd_string: id, string} d ON d.id = e.category_id
       LEFT JOIN {rocpd_string: id, string} n ON n.id = t.name_id
       LEFT JOIN {rocpd_info_kernel_symbol: id, display_name} y ON y.id = t.kernel_id
       LEFT JOIN {rocpd_info_agent: id, type, type_index} h ON h.id = t.src_agent_id
       LEFT JOIN {rocpd_info_agent: id, type, type_index} g
         ON g.id = coalesce(t.dst_agent_id, t.agent_id, k.agent_id)
       LEFT JOIN (SELECT pid FROM {rocpd_info_process: pid} LIMIT 1) p

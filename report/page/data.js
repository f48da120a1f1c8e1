// SPDX-License-Identifier: Apache-2.0
// Reads the report's data. Every field may be absent and a number may be a string (whole ones
// beyond 2^53, and NaN), so a shape names how each field is read and nothing later needs to check.
'use strict';

(() => {
  const maybe = (value) => {
    if (value === undefined || value === null || value === '') return undefined;
    const number = Number(value);
    return Number.isFinite(number) ? number : undefined;
  };
  const zero = (value) => maybe(value) ?? 0;
  const text = (value) => value === undefined || value === null ? '' : String(value);
  const flag = (value) => value === true || value === 'true';
  const list = (read) => (value) => Array.isArray(value) ? value.map((item) => read(item)) : [];
  const object = (shape) => (value) => {
    const row = value !== null && typeof value === 'object' ? value : {};
    return Object.fromEntries(Object.entries(shape).map(([name, read]) => [name, read(row[name])]));
  };
  const rows = (shape) => list(object(shape));
  const optional = (read) => (value) =>
      value !== null && typeof value === 'object' ? read(value) : undefined;

  const kShape = object({
    title: text, version: text, command: text, created: text,
    run: object({framework: text, ranks: maybe, hosts: list(text), recorded: text, steps: maybe,
      step_ms: maybe, step_spread_ms: maybe, step_mean_ms: maybe, step_word: text, wall_ms: maybe,
      events: maybe}),
    findings: rows({topic: text, verdict: text, headline: text, detail: text, section: text,
      rests_on: text}),
    nodes: rows({node_id: zero, hostname: text, trace: text, ranks: list(zero), method: text,
      offset_ms: maybe, uncertainty_ms: maybe, uncertainty_max_ms: maybe, drift_ppm: maybe,
      drift_uncertainty_ppm: maybe, max_correction_ms: maybe, events: zero,
      clock: object({time_ms: list(zero), offset_ms: list(maybe), low_ms: list(maybe),
        high_ms: list(maybe)})}),
    happens_before: optional(object({instances: zero, checked: zero, incomplete: zero,
      violations_before: zero, violations_after: zero, checked_on: text})),
    steps: rows({step: zero, start_ms: zero, end_ms: zero}),
    waiting: rows({step: maybe, rank: zero, wall_ms: zero, waited_ms: zero, transfer_ms: zero,
      worst_op: text, worst_ms: zero}),
    kinds: rows({kind: text, instances: zero, bytes: zero, wait_ms: zero, transfer_ms: zero}),
    rank_waits: rows({rank: zero, hostname: text, last: zero, collectives: zero,
      caused_wait_ms: zero, waited_ms: zero, transfer_ms: zero}),
    transfers: rows({kind: text, bytes: zero, ranks: zero, count: zero, median_ms: zero,
      wait_ms: zero, bus_gb_per_s: zero}),
    path: rows({step: maybe, rank: maybe, kind: text, ms: zero}),
    path_kinds: rows({kind: text, label: text}),
    blame: rows({step: maybe, rank: zero, hostname: text, caused_ms: zero, share: zero, op: text,
      reason: text}),
    what_if: rows({what: text, step_ms: zero, saved_ms: zero, low_ms: maybe, high_ms: maybe}),
    simulation: optional(object({network: text, calibrated_from: text, mean_error: maybe,
      step_error: maybe,
      cells: rows({kind: text, bytes: zero, group: text, measured_us: zero, simulated_us: zero,
        low_us: maybe, high_us: maybe, held_out: flag, count: zero, beside: zero}),
      snapshots: rows({start_ms: zero, members: zero, collectives: text, measured_us: zero,
        simulated_us: zero}), snapshot_error: maybe,
      steps: rows({step: maybe, measured_ms: zero, simulated_ms: zero, low_ms: maybe,
        high_ms: maybe}),
      parameters: rows({name: text, value: maybe, low: maybe, high: maybe, identified: flag,
        note: text}),
      notes: list(text)})),
    timeline: optional(object({
      lanes: rows({rank: zero, hostname: text, name: text}), names: list(text), kinds: list(text),
      events: object({lane: list(zero), name: list(zero), kind: list(zero), start_us: list(zero),
        duration_us: list(zero)}),
      path: object({lane: list(zero), start_us: list(zero), end_us: list(zero), kind: list(zero)}),
      collectives: object({name: list(text), bytes: list(zero), members: list((one) => list(zero)(one?.events))}),
      truncated: flag})),
    files: rows({kind: text, path: text, bytes: maybe, note: text}),
    notes: list(text),
    workload: optional(object({mean_error: maybe, inside: zero,
      cells: rows({nodes: zero, size: zero, measured_ms: zero, predicted_ms: zero, low_ms: maybe,
        high_ms: maybe, extrapolated: flag}),
      transitions: rows({source: zero, destination: zero, measured_ms: zero, predicted_ms: zero,
        error: maybe})})),
    stages: rows({name: text, state: text, seconds: maybe, note: text}),
  });

  report.read = (json) => kShape(JSON.parse(json));
})();

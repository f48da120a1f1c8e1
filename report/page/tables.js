// SPDX-License-Identifier: Apache-2.0
// Tables that sort by a click or a key on their headers, show 20 rows first and save as CSV.
'use strict';

(() => {
  const {element, button, explain} = report.dom;
  const kFirstRows = 20;
  const kCollator = new Intl.Collator('en', {numeric: true});

  // What is not known comes last, whichever way the column is sorted.
  function compare(a, b, direction) {
    const missing = (value) => value === undefined || value === '';
    if (missing(a) || missing(b)) return Number(missing(a)) - Number(missing(b));
    if (typeof a === 'number' && typeof b === 'number') return direction * (a - b);
    return direction * kCollator.compare(String(a), String(b));
  }

  function digitsOf(column, rows) {
    if (column.digits !== undefined) return column.digits;
    let largest = 0;
    let whole = true;
    for (const row of rows) {
      const value = column.value(row);
      if (!report.format.isKnown(value)) continue;
      largest = Math.max(largest, Math.abs(value));
      whole = whole && Number.isInteger(value);
    }
    return whole ? 0 : Math.max(1, report.format.digitsFor(largest));
  }

  function barCell(value, largest) {
    const bar = element('span', {class: 'bar'});
    bar.style.width = `${largest > 0 ? Math.max(0, Math.min(100, 100 * value / largest)) : 0}%`;
    return element('span', {class: 'track', 'aria-hidden': 'true'}, bar);
  }

  function cellOf(column, row) {
    const value = column.value(row);
    const missing = value === undefined || value === '';
    const shown = missing ? (column.absent ?? report.format.kUnknown) :
        column.number ? report.format.fixed(value, column.shownDigits) : String(value);
    const names = [column.number ? 'n' : '', missing ? 'unknown' : '',
      column.wrap ? 'wrap' : shown.length <= 20 ? 'short' : ''];
    const cell = element('td', {class: names.join(' ').trim() || undefined}, shown);
    if (column.bar && !missing) cell.append(barCell(value, column.largest));
    return cell;
  }

  // A cell that a spreadsheet would run as a formula gets a quote in front.
  function csvCell(value) {
    if (value === undefined) return '';
    if (typeof value === 'number') return String(value);
    const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
    return `"${text.replaceAll('"', '""')}"`;
  }

  function csvLink(columns, rows, name) {
    const link = element('a', {class: 'csv', href: '#', download: `${name}.csv`}, 'Save as CSV');
    link.addEventListener('click', () => {
      const lines = [columns.map((column) => csvCell(titleOf(column))),
        ...rows().map((row) => columns.map((column) => csvCell(column.value(row))))];
      link.href = `data:text/csv;charset=utf-8,${
          encodeURIComponent(lines.map((line) => line.join(',')).join('\r\n') + '\r\n')}`;
    });
    return link;
  }

  const titleOf = (column) => column.unit ? `${column.title} (${column.unit})` : column.title;

  function headerCell(column, onSort) {
    const cell = element('th', {scope: 'col', class: column.number ? 'n' : undefined,
      'aria-sort': 'none'});
    // The unit stays in one piece where the header breaks into lines.
    const shown = titleOf(column).replace(/\(.*\)$/, (unit) => unit.replaceAll(' ', '\u00a0'));
    cell.append(button(shown, () => {
      const up = column.number ? 'descending' : 'ascending';
      const down = column.number ? 'ascending' : 'descending';
      const next = cell.getAttribute('aria-sort') === up ? down : up;
      for (const other of cell.parentNode.children) other.setAttribute('aria-sort', 'none');
      cell.setAttribute('aria-sort', next);
      onSort(column, next === 'ascending' ? 1 : -1);
    }, {title: explain(column.title)}));
    return cell;
  }

  // columns: {title, unit, value(row), number, digits, absent, wrap, bar}.
  // The first order is the order of the rows. name is that of the CSV file.
  function table({caption, name, columns, rows}) {
    let order = rows;
    let all = rows.length <= kFirstRows + 5;
    const prepared = columns.map((column) => ({...column, shownDigits: digitsOf(column, rows),
      largest: column.bar ?
          rows.reduce((most, row) => Math.max(most, column.value(row) || 0), 0) : 0}));
    const body = element('tbody');
    const fill = () => body.replaceChildren(...(all ? order : order.slice(0, kFirstRows)).map(
        (row) => element('tr', {}, ...prepared.map((column) => cellOf(column, row)))));
    const sort = (by, direction) => {
      order = [...rows].sort((a, b) => compare(by.value(a), by.value(b), direction));
      fill();
    };
    const head = element('tr', {}, ...prepared.map((column) => headerCell(column, sort)));
    fill();
    const tools = element('p', {class: 'tools'}, csvLink(prepared, () => order, name));
    if (!all) {
      const more = button(`Show all ${report.format.fixed(rows.length, 0)} rows`, () => {
        all = true;
        fill();
        more.remove();
      });
      tools.prepend(more);
    }
    const made = element('table', {}, element('caption', {}, caption),
        element('thead', {}, head), body);
    return element('div', {class: 'table'}, element('div', {class: 'scroll'}, made), tools);
  }

  // Columns. A value is the name of a field or a function of the row.
  const valueOf = (value) => typeof value === 'string' ? (row) => row[value] : value;
  const text = (title, value, more) => ({title, value: valueOf(value), ...more});
  const number = (title, unit, value, more) => ({...text(title, value, more), unit, number: true});
  const whole = (title, unit, value) => number(title, unit, value, {digits: 0});
  // The value of a field in another unit.
  const times = (name, factor) => (row) => row[name] === undefined ? undefined : row[name] * factor;

  report.columns = {text, number, whole, times};
  report.table = table;
})();

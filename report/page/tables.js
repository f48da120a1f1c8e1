// SPDX-License-Identifier: Apache-2.0
// Tables that sort by a click or a key on their headers, show some rows first and save as CSV.
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

  // A number that is not 0 does not read as 0.
  function numberText(value, digits) {
    const shown = value === 0 ? '0' : report.format.fixed(value, digits);
    const least = 10 ** -digits;
    return value !== 0 && Math.abs(value) < least / 2 ? `< ${report.format.fixed(least, digits)}` : shown;
  }

  // A name that is shown short, and whole after a click.
  function shortCell(name) {
    const brief = report.format.shortName(name);
    if (brief === name) return name;
    const toggle = button(brief, () => {
      const isWhole = toggle.getAttribute('aria-expanded') === 'true';
      toggle.setAttribute('aria-expanded', String(!isWhole));
      toggle.textContent = isWhole ? brief : name;
    }, {class: 'name', 'aria-expanded': 'false', title: name});
    return toggle;
  }

  function cellOf(column, row) {
    const value = column.value(row);
    const missing = value === undefined || value === '';
    const shown = missing ? (column.absent ?? report.format.kUnknown) :
        column.number ? numberText(value, column.shownDigits) : column.brief?.(value) ?? String(value);
    const names = [column.number ? 'n' : '', missing ? 'unknown' : '',
      column.shorten ? 'wide' : column.wrap ? 'wrap' : shown.length <= 20 ? 'short' : ''];
    const cell = element('td', {class: names.join(' ').trim() || undefined,
      title: column.brief && !missing ? value : undefined},
        column.shorten && !missing ? shortCell(shown) : shown);
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
    }, {title: explain(column.about ?? column.title)}));
    return cell;
  }

  // The columns that say something, and a sentence about those that are all 0 or all not known.
  function tellingColumns(columns, rows) {
    const empty = {'All 0': [], [`All ${report.format.kUnknown}`]: []};
    const shown = columns.filter((column) => {
      if (!column.number || !rows.length) return true;
      const isZero = rows.every((row) => column.value(row) === 0);
      const isUnknown = rows.every((row) => column.value(row) === undefined);
      if (isZero || isUnknown) Object.values(empty)[isZero ? 0 : 1].push(column.title);
      return !isZero && !isUnknown;
    });
    return {shown, left: Object.entries(empty).filter(([, titles]) => titles.length)
        .map(([what, titles]) => `${what}: ${titles.join(', ')}.`).join(' ')};
  }

  const made = [];

  // Marks the rows of some ranks, of one step where rows have steps, in the tables within an element
  // and puts them first.
  function select(within, {ranks, step}) {
    const isChosen = (row) => ranks.includes(row.rank) &&
        (step === undefined || row.step === undefined || row.step === step);
    for (const one of made.filter(({element: whole}) => within.contains(whole))) one.choose(isChosen);
  }

  // columns: {title, unit, value(row), number, digits, absent, wrap, bar, shorten, brief(value): what is
  // shown of it, about: the word of the glossary that explains it, where that is not in its title}.
  // The first order is the order of the rows. name is that of the CSV file.
  function table({caption, name, columns: given, rows, first = kFirstRows}) {
    const {shown: columns, left} = tellingColumns(given, rows);
    let order = rows;
    let isChosen = () => false;
    let all = rows.length <= first + 5;
    const prepared = columns.map((column) => ({...column, shownDigits: digitsOf(column, rows),
      largest: column.bar ?
          rows.reduce((most, row) => Math.max(most, column.value(row) || 0), 0) : 0}));
    const body = element('tbody');
    const fill = () => body.replaceChildren(...(all ? order : order.slice(0, first)).map(
        (row) => element('tr', {class: isChosen(row) ? 'chosen' : undefined}, ...prepared.map((column) => cellOf(column, row)))));
    const sort = (by, direction) => {
      order = [...rows].sort((a, b) => compare(by.value(a), by.value(b), direction));
      fill();
    };
    const head = element('tr', {}, ...prepared.map((column) => headerCell(column, sort)));
    fill();
    const tools = element('p', {class: 'tools'}, csvLink(given, () => order, name),
        left && element('span', {class: 'soft'}, left));
    if (!all) {
      const more = button(`Show all ${report.format.fixed(rows.length, 0)} rows`, () => {
        all = true;
        fill();
        more.remove();
      });
      tools.prepend(more);
    }
    const whole = element('div', {class: 'table'}, element('div', {class: 'scroll'},
        element('table', {}, element('caption', {}, caption), element('thead', {}, head), body)), tools);
    made.push({element: whole, choose: (is) => {
      isChosen = is;
      order = [...order.filter(is), ...order.filter((row) => !is(row))];
      fill();
    }});
    return whole;
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
  report.selectRows = select;
})();

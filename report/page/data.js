// SPDX-License-Identifier: Apache-2.0
// Reads the report's data by the schema that the page brings along, which is made of the messages
// in report/run_report.proto. A field that is absent reads as '', false, [] or an object of such
// fields; a number that is not known (absent, NaN) as undefined, and as 0 within a list. So nothing
// later needs to check whether a field is there.
'use strict';

(() => {
  const number = (value) => typeof value === 'number' && Number.isFinite(value) ? value : undefined;
  const kReaders = {number, text: (value) => String(value ?? ''), flag: (value) => value ?? false};
  const kListItems = {...kReaders, number: (value) => number(value) ?? 0};

  // Returns the function that reads values of a shape: "text", "Finding[]", "Timeline?".
  function readerOf(shape, schema) {
    const [, name, mark] = /^(\w+)(.*)$/.exec(shape);
    const fields = Object.entries(schema[name] ?? {})
        .map(([field, inner]) => [field, readerOf(inner, schema)]);
    const readObject = (value) => Object.fromEntries(
        fields.map(([field, read]) => [field, read(value?.[field])]));
    const readOne = (readers) => readers[name] ?? readObject;
    if (mark === '[]') return (value) => (value ?? []).map(readOne(kListItems));
    if (mark === '?') return (value) => value && readObject(value);
    return readOne(kReaders);
  }

  report.read = (json) => readerOf('RunReport',
      JSON.parse(document.getElementById('schema').textContent))(JSON.parse(json));
})();

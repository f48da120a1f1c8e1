// SPDX-License-Identifier: Apache-2.0
// Numbers as people read them: few digits and a unit. What is absent reads "not known". Durations,
// percents and ranges are the texts of report/quantities.h, so that findings and tables agree.
'use strict';
const report = {};

(() => {
  const kUnknown = 'not known';
  const kDurations = [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs'], [1, 'ns']];
  const kSizes = [[2 ** 40, 'TiB'], [2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [2 ** 10, 'KiB'], [1, 'B']];

  const isKnown = (value) => typeof value === 'number' && Number.isFinite(value);

  // With so many digits after the point, thousands parted by commas. As in C, a value that lies
  // exactly between two goes to the even digit.
  function fixed(value, digits) {
    if (!isKnown(value)) return kUnknown;
    if (Math.abs(value) >= 1e15) return value.toExponential(2);
    const size = Math.abs(value);
    const parts = size * 2 ** digits;
    const isTie = Number.isInteger(2 * parts) && !Number.isInteger(parts);
    let text = size.toFixed(digits);
    if (isTie && Number(text.at(-1)) % 2) text = (size - 0.4 / 10 ** digits).toFixed(digits);
    const [whole, fraction] = text.split('.');
    const sign = value < 0 && Number(text) !== 0 ? '-' : '';
    const parted = sign + whole.replace(/\B(?=(\d{3})+$)/g, ',');
    return fraction ? `${parted}.${fraction}` : parted;
  }

  // How many digits after the point show three digits of the largest value.
  function digitsFor(largest) {
    if (!(largest > 0)) return 0;
    return Math.max(0, Math.min(6, 2 - Math.floor(Math.log10(largest))));
  }

  const plain = (value) => fixed(value, Number.isInteger(value) ? 0 : digitsFor(Math.abs(value)));

  // Three digits at least, in the largest unit of which there is one after rounding.
  function scaled(value, units) {
    if (!isKnown(value)) return kUnknown;
    const size = Math.abs(value);
    const [scale, unit] = units.find(([least]) => size >= 0.9995 * least) ?? units.at(-1);
    const amount = size / scale;
    const digits = amount >= 99.95 || (scale === 1 && Number.isInteger(value)) ? 0 :
        amount >= 9.995 ? 1 : 2;
    // Whole numbers are rounded away from 0.
    return `${fixed(Math.sign(value) * (digits ? amount : Math.round(amount)), digits)} ${unit}`;
  }

  const nanoseconds = (value) => scaled(value, kDurations);

  // "0-3, 8": runs of numbers, each once.
  function ranges(numbers) {
    const runs = [];
    for (const value of [...new Set(numbers)].sort((a, b) => a - b)) {
      const last = runs.at(-1);
      if (last && value === last[1] + 1) last[1] = value; else runs.push([value, value]);
    }
    return runs.map(([low, high]) => low === high ? `${low}` : `${low}-${high}`).join(', ');
  }

  // Types of which many kernels are made: they tell none from another.
  const kPlainTypes = new Set(['int', 'long', 'short', 'char', 'float', 'double', 'bool', 'void',
    'unsigned', 'signed', 'true', 'false', 'half', '__half', 'const', 'size_t', 'std']);
  const kDeepest = 8;

  // The position after the bracket that closes the one at a position; undefined when none does.
  function afterBracket(text, from) {
    const closing = {'<': '>', '(': ')', '{': '}'}[text[from]];
    for (let at = from, depth = 0; at < text.length; ++at) {
      if (text[at] === text[from]) ++depth;
      if (text[at] === closing && text[at - 1] !== '-' && --depth === 0) return at + 1;
    }
    return undefined;
  }

  // Reads one C++ name or type: {short, plain: it tells nothing, at: where it ends}. Of a qualified
  // name the last part counts, of its template arguments the first that is no plain type or number.
  function readCpp(text, from, depth) {
    let [at, word, args, last] = [from, '', '', ''];
    const keep = () => {
      if (word && word !== 'operator') last = word + args;
      word = args = '';
    };
    while (at < text.length && !',>)'.includes(text[at])) {
      if ('({'.includes(text[at]) || (text[at] === '<' && depth > kDeepest)) {
        at = afterBracket(text, at) ?? text.length;
        continue;
      }
      if (text[at] === '<') {
        const found = [];
        do {
          found.push(readCpp(text, at + 1, depth + 1));
          at = found.at(-1).at;
        } while (text[at] === ',');
        const telling = found.find(({plain}) => !plain) ?? (found.length === 1 ? found[0] : undefined);
        args = telling ? `<${telling.short}>` : '';
      } else if (text.startsWith('::', at)) {
        keep();
        ++at;
      } else if (text[at] === ' ') {
        // What stands before a space is a return type, or a type that "const" or ">" follows.
        const rest = /^ +(const\b|&|\*|>|$)/.exec(text.slice(at, at + 12));
        if (!rest && (word || last)) word = args = last = '';
        if (rest?.[1] === 'const') at += 5;
      } else {
        word += text[at];
      }
      ++at;
    }
    keep();
    return {short: last, at, plain: kPlainTypes.has(last.replace(/[*&]+$/, '')) || !/^[A-Za-z_]/.test(last)};
  }

  // A kernel's name as people say it: of a C++ signature without return type, namespaces, parameters
  // and most template arguments. Other names stay.
  //   void at::native::reduce_kernel<512, 1, ReduceOp<float, MeanOps<float> > >(...)
  //   -> reduce_kernel<ReduceOp<MeanOps<float>>>
  function shortName(name) {
    const [, front, whole] = /^((?:.*?: )?)(.*)$/s.exec(name);
    const text = whole.replaceAll('(anonymous namespace)::', '').replace(/ \[.*\]$/, '');
    if (!/^[\w:~ ]+[<(]/.test(text) || / \(|->|[^:]:[^:]/.test(text)) return name;
    if (!/<|[*&]|::|\b(int|float|double|long|char|bool|unsigned|void)\b/.test(text)) return name;
    if (afterBracket(text, text.search(/[<(]/)) === undefined) return name;
    const {short, at} = readCpp(text, 0, 0);
    return short && at >= text.length ? front + short : name;
  }

  report.format = {
    shortName, isKnown, fixed, digitsFor, plain, kUnknown, nanoseconds, ranges,
    microseconds: (value) => isKnown(value) ? nanoseconds(value * 1e3) : kUnknown,
    milliseconds: (value) => isKnown(value) ? nanoseconds(value * 1e6) : kUnknown,
    bytes: (value) => scaled(value, kSizes),
    rate: (gb_per_s) => isKnown(gb_per_s) ? `${plain(gb_per_s)} GB/s` : kUnknown,
    percent: (share) => !isKnown(share) ? kUnknown : share > 0 && share < 0.0005 ? 'under 0.1 %' :
        `${fixed(100 * share, share > 0 && share < 0.095 ? 1 : 0)} %`,
    count: (value, one, many = one + 's') =>
        isKnown(value) ? `${fixed(value, 0)} ${value === 1 ? one : many}` : `${many}: ${kUnknown}`,
  };
})();

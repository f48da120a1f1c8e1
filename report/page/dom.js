// SPDX-License-Identifier: Apache-2.0
// Elements. Data reaches the page only as text nodes and attribute values, never as markup.
'use strict';

(() => {
  // element('p', {class: 'soft', hidden: ''}, 'text', child): attributes, then texts and elements.
  function element(tag, attributes = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (value !== undefined) made.setAttribute(name, value);
    }
    made.append(...children.filter((child) => child !== undefined && child !== ''));
    return made;
  }

  function button(label, onClick, attributes = {}) {
    const made = element('button', {type: 'button', ...attributes}, label);
    made.addEventListener('click', onClick);
    return made;
  }

  const paragraph = (text, name) => element('p', {class: name}, text);
  const missing = (text) => paragraph(text, 'missing');
  // What opens on a click on its title.
  const folded = (title, ...children) =>
      element('details', {}, element('summary', {}, title), ...children);
  const list = (lines) => element('ul', {}, ...lines.map((line) => element('li', {}, line)));

  // What a run's steps are called: periods, where nothing marks steps.
  const stepWord = () => report.stepWord || 'step';
  // What lies in no step has no number.
  const stepName = (step) =>
      step === undefined ? `outside of ${stepWord()}s` : `${stepWord()} ${step}`;

  // A chooser of one step, or of all (the value undefined), with buttons for its neighbours.
  // Calls onChange with the position in steps.
  function stepChooser(steps, chosen, onChange) {
    const select = element('select', {},
        element('option', {value: ''}, `all ${stepWord()}s`),
        ...steps.map((step, at) => element('option', {value: at},
            `${stepName(step.step)} (${report.format.milliseconds(step.end_ms - step.start_ms)})`)));
    select.value = chosen === undefined ? '' : String(chosen);
    const position = () => select.value === '' ? undefined : Number(select.value);
    const move = (by) => {
      const options = select.options.length;
      select.selectedIndex = Math.max(0, Math.min(options - 1, select.selectedIndex + by));
      onChange(position());
    };
    select.addEventListener('change', () => onChange(position()));
    return element('span', {class: 'chooser'}, element('label', {}, 'Step ', select),
        button('‹', () => move(-1), {'aria-label': 'Previous step'}),
        button('›', () => move(1), {'aria-label': 'Next step'}));
  }

  // What the glossary says of a title: of the title itself, else of the longest of its words that
  // are in it ("bus bandwidth (GB/s)"); undefined for nothing.
  const kGlossary = Object.entries(JSON.parse(document.getElementById('glossary').textContent))
      .sort(([a], [b]) => b.length - a.length);
  const explain = (title) => kGlossary.find(([word]) =>
    new RegExp(`(^|[^a-z])${word.toLowerCase()}s?($|[^a-z])`).test(title.toLowerCase()))?.[1];

  report.dom = {explain, element, button, folded, paragraph, missing, list, stepChooser, stepName, stepWord};
})();

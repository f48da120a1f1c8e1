// SPDX-License-Identifier: Apache-2.0
// Builds the page from the data, then follows links, the colour scheme, printing and the place read.
'use strict';

(() => {
  const {element, explain} = report.dom;
  const kOpen = ['summary', 'comparison', 'timeline', 'pictures', 'operations'];
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const root = document.documentElement;
  const filled = new Set();
  let data;

  function navigation(nav) {
    nav.append(element('ul', {}, ...shownTitles().map(
        ([id, title]) => element('li', {}, element('a', {href: `#${id}`}, title)))));
    const links = new Map([...nav.querySelectorAll('a')].map((link) => [link.hash.slice(1), link]));
    for (const [id, link] of links) link.addEventListener('click', () => report.openSection(id));
    const mark = (entries) => entries.filter((entry) => entry.isIntersecting).forEach((entry) => {
      for (const link of links.values()) link.removeAttribute('aria-current');
      const link = links.get(entry.target.id);
      link.setAttribute('aria-current', 'true');
      nav.scrollLeft = link.offsetLeft - nav.clientWidth / 3;
    });
    const watcher = new IntersectionObserver(mark, {rootMargin: '-20% 0px -75% 0px'});
    for (const id of links.keys()) watcher.observe(document.getElementById(id));
  }

  function repaint() {
    const scheme = report.theme.chosen();
    root.dataset.theme = scheme === 'auto' ? (dark.matches ? 'dark' : 'light') : scheme;
    report.charts.repaintAll();
    report.view?.repaint();
  }

  // The theme is kept in the address alone: ?theme=dark.
  report.theme = {
    chosen() {
      const name = new URLSearchParams(location.search).get('theme');
      return report.theme.name ?? (['light', 'dark'].includes(name) ? name : 'auto');
    },
    choose(name) {
      report.theme.name = name;
      try {
        history.replaceState(history.state, '', `${name === 'auto' ? location.pathname : `?theme=${name}`}${location.hash}`);
      } catch {
        // A browser may keep the addresses of files as they are.
      }
      repaint();
    },
  };

  // Paper is light and has no buttons: what is closed opens for it.
  function followPrinting() {
    let opened = [];
    addEventListener('beforeprint', () => {
      for (const [id] of shownTitles()) fill(id);
      opened = [...document.querySelectorAll('details:not([open])')];
      for (const one of opened) one.open = true;
      root.dataset.print = '';
      repaint();
      report.charts.drawNew();
      report.view?.draw();
    });
    addEventListener('afterprint', () => {
      for (const one of opened) one.open = false;
      delete root.dataset.print;
      repaint();
    });
  }

  // Fills a section when it is first seen. One that fails must not take the others with it.
  function fill(id) {
    if (filled.has(id)) return;
    filled.add(id);
    const body = document.getElementById(id).querySelector('details') ?? document.getElementById(id);
    try {
      const lack = report.sections[id](data, body);
      if (lack) body.append(report.dom.missing(lack));
    } catch (error) {
      console.error(error);
      body.append(report.dom.paragraph(
          `This section could not be drawn: ${error.message}`, 'verdict bad'));
    }
  }

  // Opens a section, and returns it; undefined where there is none of that name.
  report.openSection = (id) => {
    if (!shownTitles().some(([name]) => name === id)) return undefined;
    const section = document.getElementById(id);
    const details = section.querySelector(':scope > details');
    if (details) details.open = true;
    fill(id);
    report.charts.drawNew();
    return section;
  };

  const shownTitles = () => report.sectionTitles.filter(([id]) => id !== 'comparison' || data.comparison);

  function frameOf([id, title, heading = title]) {
    const head = element('h2', {title: explain(heading), class: id === 'summary' ? 'hidden' : undefined}, heading);
    if (kOpen.includes(id)) return element('section', {id}, head);
    const details = element('details', {}, element('summary', {}, head));
    details.addEventListener('toggle', () => { if (details.open) report.openSection(id); });
    return element('section', {id}, details);
  }

  // The section that the address names.
  const followAddress = () => report.openSection(location.hash.slice(1))?.scrollIntoView();

  function build() {
    data = report.read(document.getElementById('data').textContent);
    report.stepWord = data.run.step_word;
    report.hosts = new Map(data.combine.nodes.flatMap(
        ({ranks, hostname}) => ranks.map((rank) => [rank, hostname])));
    document.querySelector('main').append(...shownTitles().map(frameOf));
    document.title = data.title || document.title;
    report.heading(data, document.getElementById('top'));
    navigation(document.getElementById('sections'));
    Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
    repaint();
    // The timeline first: what the findings link to depends on it.
    for (const id of ['timeline', ...kOpen]) if (document.getElementById(id)) fill(id);
    if (data.combine.nodes.length && !report.clocksAgree(data.combine)) report.openSection('clocks');
    document.getElementById('made').append(report.made(data));
    report.charts.drawNew();
  }

  build();
  followAddress();
  addEventListener('hashchange', followAddress);
  dark.addEventListener('change', repaint);
  followPrinting();
})();

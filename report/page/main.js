// SPDX-License-Identifier: Apache-2.0
// Builds the page from the data, then follows the colour scheme, printing and the place read.
'use strict';

(() => {
  const {element} = report.dom;

  function navigation(nav) {
    nav.append(element('ul', {}, ...report.sectionTitles.map(
        ([id, title]) => element('li', {}, element('a', {href: `#${id}`}, title)))));
    const links = new Map([...nav.querySelectorAll('a')].map((link) => [link.hash.slice(1), link]));
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
    report.charts.repaintAll();
    report.view?.repaint();
  }

  // Paper is light and has no buttons: tables that are closed open for it.
  function followPrinting() {
    let opened = [];
    addEventListener('beforeprint', () => {
      opened = [...document.querySelectorAll('details:not([open])')];
      for (const one of opened) one.open = true;
      document.documentElement.dataset.print = '';
      repaint();
      report.view?.draw();
    });
    addEventListener('afterprint', () => {
      for (const one of opened) one.open = false;
      delete document.documentElement.dataset.print;
      repaint();
    });
  }

  // A section that fails must not take the others with it.
  function fill(id, data) {
    const section = document.getElementById(id);
    try {
      const lack = report.sections[id](data, section);
      if (lack) section.append(report.dom.missing(lack));
    } catch (error) {
      console.error(error);
      section.append(report.dom.paragraph(
          `This section could not be drawn: ${error.message}`, 'verdict bad'));
    }
  }

  const data = report.read(document.getElementById('data').textContent);
  report.stepWord = data.run.step_word;
  report.hosts = new Map(data.combine.nodes.flatMap(
      ({ranks, hostname}) => ranks.map((rank) => [rank, hostname])));
  document.querySelector('main').append(
      ...report.sectionTitles.map(([id, title, heading = title]) =>
        element('section', {id}, element('h2', {}, heading))));
  document.title = data.title || document.title;
  report.heading(data, document.getElementById('top'));
  navigation(document.getElementById('sections'));
  for (const id of Object.keys(report.sections)) fill(id, data);
  Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
  report.charts.drawAll();
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', repaint);
  followPrinting();
})();

// The notebook's page: cells that the server evaluates, over one WebSocket.
const $ = (id) => document.getElementById(id);
let socket;
let cells = 0;

/** Adds a cell at the end, and goes there. */
function addCell(code = '') {
  const number = ++cells;
  const cell = Object.assign(document.createElement('section'), { className: 'cell' });
  const input = Object.assign(document.createElement('textarea'), { rows: 2, spellcheck: false, value: code });
  input.setAttribute('aria-label', `Cell ${number}`);
  const run = Object.assign(document.createElement('button'), { textContent: 'Run' });
  const output = document.createElement('output');
  const mark = (text) => Object.assign(document.createElement('span'), { className: 'mark', textContent: text });
  cell.append(mark(`In ${number}`), input, run, mark(''), output);
  const start = () => {
    if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ cell: number, code: input.value }));
    else show(output, 'The notebook is not connected.', true);
  };
  run.addEventListener('click', start);
  input.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || !event.shiftKey) return;
    event.preventDefault();
    start();
  });
  cell.dataset.cell = number;
  $('cells').append(cell);
  input.focus();
}

function show(output, text, bad) {
  output.textContent = text;
  output.classList.toggle('bad', bad);
}

function report({ cell, out = '', error }) {
  show(document.querySelector(`[data-cell="${cell}"] output`), error ?? out, error !== undefined);
}

const hears = {
  hello({ greeting, caller, cells: kept = [] }) {
    $('greeting').textContent = greeting;
    document.title = greeting;
    $('caller').textContent = caller;
    if (cells > 0) return; // the page is connected again, and has what is kept
    for (const { code = '', ...rest } of kept) {
      addCell(code);
      report(rest);
    }
    addCell();
  },
  ran({ cell, out, error }) {
    report({ cell, out, error });
    if (cell === cells && error === undefined) addCell();
  },
};

function connect() {
  socket = new WebSocket(`${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}/cells`);
  socket.addEventListener('message', ({ data }) => {
    const { event, ...rest } = JSON.parse(data);
    hears[event](rest);
  });
  socket.addEventListener('close', () => {
    $('caller').textContent = 'The connection has ended. The page tries to connect again.';
    setTimeout(connect, 2000);
  });
}

connect();

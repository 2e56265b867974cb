"""How a plan looks in a browser: the style sheet and the one script.

Colours follow the reader's light or dark setting, and inside a notebook the notebook's; nothing is
loaded from anywhere. All names stand below ``.itplan``, so that nothing else on a page changes.
"""

from __future__ import annotations

LIGHT = """--ink:#1b2430;--soft:#5a6675;--line:#dfe4ea;--card:#f6f8fa;--page:#fff;--bar:#2f6fde;
  --lost:#d5deeb;--good:#11734b;--goodbg:#dff5ea;--warn:#8a5a00;--warnbg:#fdf0d3;--gone:#6a7380;
  --gonebg:#eceff3;--chip:#e4ecfb;--chipink:#2351a8"""

DARK = """--ink:#e6eaf0;--soft:#9ba7b6;--line:#323b47;--card:#1c232c;--page:#12171d;--bar:#6ea0f7;
  --lost:#2c3643;--good:#7fe0b2;--goodbg:#12372a;--warn:#f3cd7d;--warnbg:#3d3014;--gone:#a3adba;
  --gonebg:#262e38;--chip:#203152;--chipink:#a9c6ff"""

_COLOURS = f"""
.itplan{{{LIGHT}}}
@media (prefers-color-scheme:dark){{.itplan{{{DARK}}}}}
[data-jp-theme-light=true] .itplan,[data-vscode-theme-kind=vscode-light] .itplan{{{LIGHT}}}
[data-jp-theme-light=false] .itplan,[data-vscode-theme-kind=vscode-dark] .itplan{{{DARK}}}"""

_SHAPES = """
.itplan{color:var(--ink);max-width:72rem;
  font:14px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
.itplan.cell{background:var(--page);border:1px solid var(--line);border-radius:8px;padding:1rem}
.itplan *{box-sizing:border-box}
.itplan h1{font-size:20px;line-height:1.3;margin:0 0 .15em}
.itplan h2{font-size:15px;margin:1.8em 0 .6em}
.itplan p{margin:.3em 0}
.itplan .soft{color:var(--soft)}
.itplan code,.itplan pre{font:13px/1.5 ui-monospace,"SF Mono",Menlo,Consolas,monospace}
.itplan code{overflow-wrap:anywhere;background:none;color:inherit;padding:0}
.itplan .cards{display:flex;flex-wrap:wrap;gap:.7rem;margin:1.1rem 0}
.itplan .card{flex:1 1 9rem;background:var(--card);border:1px solid var(--line);
  border-radius:8px;padding:.6rem .9rem}
.itplan .card b{display:block;font-size:19px;line-height:1.35;font-variant-numeric:tabular-nums}
.itplan .funnel{display:grid;grid-template-columns:max-content minmax(8rem,1fr) max-content;
  gap:.45rem 1rem;align-items:center}
.itplan .funnel .name small{display:block;color:var(--soft);line-height:1.2}
.itplan .bar{background:var(--lost);height:1.15rem;border-radius:4px;overflow:hidden}
.itplan .bar i{display:block;height:100%;background:var(--bar);min-width:3px;border-radius:4px}
.itplan .bar i.none{min-width:0}
.itplan .funnel .n{text-align:right;font-variant-numeric:tabular-nums;line-height:1.25}
.itplan .funnel .n small{display:block;color:var(--soft)}
.itplan .tree ul{list-style:none;margin:.25em 0 .25em .6em;padding:0 0 0 1em;
  border-left:2px solid var(--line)}
.itplan .tree li{margin:.3em 0}
.itplan .tree b{letter-spacing:.04em;font-size:12px;color:var(--soft)}
.itplan .chip{display:inline-block;font-size:11.5px;line-height:1.5;border-radius:99px;
  padding:0 .6em;margin-left:.45em;background:var(--chip);color:var(--chipink);white-space:nowrap}
.itplan .chip.late{background:var(--gonebg);color:var(--gone)}
.itplan .chip.must{background:var(--goodbg);color:var(--good);margin-left:0}
.itplan .chip.may{background:var(--warnbg);color:var(--warn);margin-left:0}
.itplan .chip.gone{background:var(--gonebg);color:var(--gone);margin-left:0}
.itplan details{margin:.8em 0}
.itplan summary{cursor:pointer;color:var(--soft)}
.itplan pre{background:var(--card);border:1px solid var(--line);border-radius:8px;
  padding:.7rem .9rem;margin:.5em 0;overflow:auto;max-height:24rem;color:inherit}
.itplan table{border-collapse:collapse;width:100%;font-size:13px}
.itplan th{color:var(--soft);font-weight:600;white-space:nowrap}
.itplan td,.itplan th{padding:.35em .7em .35em 0;text-align:left;vertical-align:top;
  border-bottom:1px solid var(--line);background:none}
.itplan td.n,.itplan th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.itplan input{width:100%;font:inherit;padding:.5em .8em;margin:.1em 0 .5em;color:inherit;
  background:var(--card);border:1px solid var(--line);border-radius:8px}
.itplan input:focus-visible{outline:2px solid var(--bar);outline-offset:1px}
@media (max-width:34rem){.itplan .funnel{grid-template-columns:max-content 1fr}
  .itplan .bar{grid-column:1/-1;grid-row:auto}}
"""

STYLE = _COLOURS + _SHAPES

PAGE_STYLE = """
html{background:#fff}
@media (prefers-color-scheme:dark){html{background:#12171d}}
body{margin:0}
body>.itplan{margin:0 auto;padding:2rem 1.5rem 4rem}
"""

SCRIPT = """
(function(){
  var box=document.querySelector('.itplan input'),note=document.querySelector('.itplan .shown');
  var rows=[].slice.call(document.querySelectorAll('.itplan tbody.splits tr'));
  var texts=rows.map(function(r){return r.textContent.toLowerCase();});
  function show(){
    var words=box.value.toLowerCase().split(' ').filter(Boolean),shown=0;
    rows.forEach(function(r,k){
      r.hidden=!words.every(function(w){return texts[k].indexOf(w)>=0;});
      if(!r.hidden)shown++;});
    note.textContent=shown.toLocaleString('en')+' of '+rows.length.toLocaleString('en')+' shown';
  }
  box.addEventListener('input',show);
  show();
})();
"""

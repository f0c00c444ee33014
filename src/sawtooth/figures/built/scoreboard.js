/*! sawtooth, Apache-2.0. With uPlot 1.6.32:
The MIT License (MIT)

Copyright (c) 2022 Leon Sorokin

Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files (the "Software"), to deal
in the Software without restriction, including without limitation the rights
to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in
all copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN
THE SOFTWARE.
*/
"use strict";var sawtooth=(()=>{var y="CONTROL",p=e=>document.getElementById(e);function a(e,n="",r={}){return Object.assign(document.createElement(e),{textContent:n,...r})}function H(){let e=JSON.parse(p("content").textContent),n=p("measure"),r=p("filter");e.measures.forEach(({title:m},u)=>n.append(a("option",m,{value:String(u)})));let o=-1,c=!1,l=()=>{let m=Number(n.value),u=r.value.toLowerCase().split(/\s+/).filter(Boolean),b=e.networks.map((s,t)=>({at:t,network:s,values:e.values[m][t]})).filter(({network:s,values:t})=>t.some(i=>i!==null)&&u.every(i=>`${s.name} ${s.title}`.toLowerCase().includes(i)));o>=0&&b.sort((s,t)=>O(s.values[o],t.values[o],c)||s.at-t.at);let h=e.controls.map(({label:s},t)=>{let i=a("button",s,{type:"button"});i.addEventListener("click",()=>{c=o===t?!c:!1,o=t,l()});let d=a("th");return d.setAttribute("aria-sort",o!==t?"none":c?"ascending":"descending"),d.append(i),d}),f=a("tr");f.append(a("th","network",{className:"text"}),...h),p("head").replaceChildren(f),p("rows").replaceChildren(...b.map(s=>R(s,e,m))),p("count").textContent=`${b.length} of ${e.networks.length} networks have this measure and match.`};n.addEventListener("change",l),r.addEventListener("input",l),l()}function O(e,n,r){return!e||!n?+!e-+!n:r?e[0]-n[0]:n[0]-e[0]}function R({at:e,network:n,values:r},o,c){let{digits:l,more:m}=o.measures[c],u=r.flatMap(t=>t?[t[0]]:[]),b=m?Math.max(...u):Math.min(...u),h=a("td",n.name,{className:"text",title:n.title}),f=r.map((t,i)=>{let d=o.runs[e][i];if(!t||!d)return a("td","\u2013");let[E,x,M]=d,[g,N,T]=t,{cc:v}=o.controls[i],L=n.lab!==""&&v!=="",C=N===null?g.toFixed(l):`${g.toFixed(l)} \xB1 ${N.toFixed(l)}`,k=a("a",C,{href:L?n.lab.replaceAll(y,v):`${M}/run.json`,target:"_blank",rel:"noopener"});k.title=`${L?"open seed 1 in the lab":"the run of seed 1"}; by seed: ${T.map($=>$.toFixed(l)).join(", ")}`;let w=a("td","",{className:g===b&&u.length>1?"best":""});return w.append(k),E>0&&w.append(a("span",` broken ${E} of ${x}`,{className:"broken"})),w}),s=a("tr");return s.append(h,...f),s}H();})();

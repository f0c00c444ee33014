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
"use strict";var sawtooth=(()=>{var O="CONTROL",b=e=>document.getElementById(e);function a(e,n="",r={}){return Object.assign(document.createElement(e),{textContent:n,...r})}function R(){let e=JSON.parse(b("content").textContent),n=b("measure"),r=b("filter");e.measures.forEach(({title:c},m)=>n.append(a("option",c,{value:String(m)})));let o=-1,d=!1,l=()=>{let c=Number(n.value),m=r.value.toLowerCase().split(/\s+/).filter(Boolean),i=e.networks.map((s,t)=>({at:t,network:s,values:e.values[c][t]})).filter(({network:s,values:t})=>t.some(u=>u!==null)&&m.every(u=>`${s.name} ${s.title}`.toLowerCase().includes(u)));o>=0&&i.sort((s,t)=>F(s.values[o],t.values[o],d)||s.at-t.at);let w=e.controls.map(({label:s},t)=>{let u=a("button",s,{type:"button"});u.addEventListener("click",()=>{d=o===t?!d:!1,o=t,l()});let p=a("th");return p.setAttribute("aria-sort",o!==t?"none":d?"ascending":"descending"),p.append(u),p}),h=a("tr");h.append(a("th","network",{className:"text"}),...w),b("head").replaceChildren(h),b("rows").replaceChildren(...i.map(s=>V(s,e,c))),b("count").textContent=`${i.length} of ${e.networks.length} networks have this measure and match.`};n.addEventListener("change",l),r.addEventListener("input",l),l()}function F(e,n,r){return!e||!n?+!e-+!n:r?e[0]-n[0]:n[0]-e[0]}function V({at:e,network:n,values:r},o,d){let{digits:l,more:c}=o.measures[d],m=r.flatMap(t=>t?[t[0]]:[]),i=c?Math.max(...m):Math.min(...m),w=a("td",n.name,{className:"text",title:n.title}),h=r.map((t,u)=>{let p=o.runs[e][u];if(!t||!p)return a("td","\u2013");let[E,M,k]=p,[f,N,T]=t,{cc:x}=o.controls[u],v=n.lab!==""&&x!=="",C=N===null?f.toFixed(l):`${f.toFixed(l)} \xB1 ${N.toFixed(l)}`,L=a("a",C,{href:v?n.lab.replaceAll(O,x):`${k}/run.json`,target:"_blank",rel:"noopener"}),$=T.map(H=>H?.toFixed(l)??"\u2013").join(", ");L.title=`${v?"open seed 1 in the lab":"the run of the first seed"}; by seed: ${$}`;let g=a("td","",{className:f===i&&m.length>1?"best":""});g.append(L);let y=f===i?1:c?f/i:i/f;return i>=0&&g.style.setProperty("--part",`${Math.max(0,100*y).toFixed(1)}%`),E>0&&g.append(a("span",` broken ${E} of ${M}`,{className:"broken"})),g}),s=a("tr");return s.append(w,...h),s}R();})();

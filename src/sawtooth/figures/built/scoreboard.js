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
"use strict";var sawtooth=(()=>{var O="CONTROL",f=e=>document.getElementById(e);function a(e,n="",r={}){return Object.assign(document.createElement(e),{textContent:n,...r})}function R(){let e=JSON.parse(f("content").textContent),n=f("measure"),r=f("filter");e.measures.forEach(({title:u},c)=>n.append(a("option",u,{value:String(c)})));let o=-1,d=!1,l=()=>{let u=Number(n.value),c=r.value.toLowerCase().split(/\s+/).filter(Boolean),m=e.networks.map((s,t)=>({at:t,network:s,values:e.values[u][t]})).filter(({network:s,values:t})=>t.some(i=>i!==null)&&c.every(i=>`${s.name} ${s.title}`.toLowerCase().includes(i)));o>=0&&m.sort((s,t)=>F(s.values[o],t.values[o],d)||s.at-t.at);let w=e.controls.map(({label:s},t)=>{let i=a("button",s,{type:"button"});i.addEventListener("click",()=>{d=o===t?!d:!1,o=t,l()});let p=a("th");return p.setAttribute("aria-sort",o!==t?"none":d?"ascending":"descending"),p.append(i),p}),h=a("tr");h.append(a("th","network",{className:"text"}),...w),f("head").replaceChildren(h),f("rows").replaceChildren(...m.map(s=>V(s,e,u))),f("count").textContent=`${m.length} of ${e.networks.length} networks have this measure and match.`};n.addEventListener("change",l),r.addEventListener("input",l),l()}function F(e,n,r){return!e||!n?+!e-+!n:r?e[0]-n[0]:n[0]-e[0]}function V({at:e,network:n,values:r},o,d){let{digits:l,more:u}=o.measures[d],c=r.flatMap(t=>t?[t[0]]:[]),m=u?Math.max(...c):Math.min(...c),w=a("td",n.name,{className:"text",title:n.title}),h=r.map((t,i)=>{let p=o.runs[e][i];if(!t||!p)return a("td","\u2013");let[E,k,T]=p,[b,N,C]=t,{cc:x}=o.controls[i],v=n.lab!==""&&x!=="",$=N===null?b.toFixed(l):`${b.toFixed(l)} \xB1 ${N.toFixed(l)}`,L=a("a",$,{href:v?n.lab.replaceAll(O,x):`${T}/run.json`,target:"_blank",rel:"noopener"});L.title=`${v?"open seed 1 in the lab":"the run of seed 1"}; by seed: ${C.map(H=>H.toFixed(l)).join(", ")}`;let g=a("td","",{className:b===m&&c.length>1?"best":""});g.append(L);let[y,M]=u?[b,m]:[m,b];return M>0&&g.style.setProperty("--part",`${Math.max(0,100*y/M).toFixed(1)}%`),E>0&&g.append(a("span",` broken ${E} of ${k}`,{className:"broken"})),g}),s=a("tr");return s.append(w,...h),s}R();})();

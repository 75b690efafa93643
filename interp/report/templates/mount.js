// Puts the browser of pairs in its place, and leads back to the number from which a reader came.
"use strict";

const place = document.querySelector("#pairs-browser");
if (place) browse(place);

const back = document.querySelector("#back");
if (back) {
  const from = new URLSearchParams(location.hash.slice(1)).get("from");
  if (from) back.hash = from;
}

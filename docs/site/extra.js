// Wide tables scroll by themselves; with this, also by the keyboard.
document$.subscribe(() => {
  setTimeout(() => {
    for (const wrap of document.querySelectorAll(".md-typeset__scrollwrap")) {
      wrap.tabIndex = 0;
    }
  }, 0);
});

// Endless lists: the "load more" button presses itself when it scrolls into view, and stays a button for everyone else.

/** Call back whenever a shown, enabled button comes into view. */
export function onReached(button, callback) {
  if (!("IntersectionObserver" in window)) return;
  const observer = new IntersectionObserver((entries) => {
    if (entries.some((entry) => entry.isIntersecting) && !button.hidden && !button.disabled) callback();
  });
  observer.observe(button);
}

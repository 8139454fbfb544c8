// How often, and after which pauses, a request is repeated that the platform refused because it was busy.

const PAUSES = [300, 1000, 3000]; // milliseconds

/** Wait before the attempt after number `attempt`, which counts from 0; resolves to false if there should be no more. */
export async function mayTryAgain(attempt) {
  if (attempt >= PAUSES.length) return false;
  await new Promise((resolve) => setTimeout(resolve, PAUSES[attempt] * (1 + Math.random() / 2))); // tabs must not come back all at once
  return true;
}

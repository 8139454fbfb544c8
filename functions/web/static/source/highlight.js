// Finds the highlight on a rendered page: the server paints it yellow, so the pixels are searched for yellow.

const COARSE_WIDTH = 160;
const LEAST_SHARE = 0.04;

/** The box `{top, left, right}` of the first highlight, as shares of the image (0 to 1), or null when there is none. */
export function findHighlight(image) {
  const canvas = document.createElement("canvas");
  canvas.width = COARSE_WIDTH;
  canvas.height = Math.max(1, Math.round((COARSE_WIDTH * image.naturalHeight) / image.naturalWidth));
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.drawImage(image, 0, 0, canvas.width, canvas.height);
  const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
  for (let row = 0; row < canvas.height; row += 1) {
    const yellow = columns().filter((column) => isYellow(data, (row * canvas.width + column) * 4));
    if (yellow.length < canvas.width * LEAST_SHARE) continue;
    return { top: row / canvas.height, left: yellow[0] / canvas.width, right: (yellow.at(-1) + 1) / canvas.width };
  }
  return null;
}

const columns = () => Array.from({ length: COARSE_WIDTH }, (_, column) => column);

function isYellow(data, at) {
  const [red, green, blue] = [data[at], data[at + 1], data[at + 2]];
  return red > 170 && green > 140 && red - blue > 45 && green - blue > 30;
}

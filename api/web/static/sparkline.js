// A line without axes. Its scale begins at zero, so that a quiet feed is a flat line at the bottom.

export function drawSparkline(canvas, values, capacity) {
  const ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth;
  const height = canvas.clientHeight;
  if (!width || !height) return;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  pen.lineWidth = 1.5;
  pen.strokeStyle = getComputedStyle(canvas).color;
  const most = Math.max(1, ...values);
  pen.beginPath();
  values.forEach((value, place) => {
    const x = width - ((values.length - 1 - place) / (capacity - 1)) * width;
    const y = height - 2 - (value / most) * (height - 4);
    if (place === 0) pen.moveTo(x, y);
    else pen.lineTo(x, y);
  });
  pen.stroke();
}

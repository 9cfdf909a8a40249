// The dashboard's door.
const form = document.getElementById("login");
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const body = JSON.stringify({ password: document.getElementById("password").value });
  const headers = { "content-type": "application/json" };
  const message = document.getElementById("message");
  try {
    const response = await fetch("/dashboard/login", { method: "POST", headers, body });
    if (response.ok) location.reload();
    else message.textContent = `${(await response.json()).error}.`;
  } catch {
    message.textContent = "The server could not be reached.";
  }
  message.className = "bad";
});
document.getElementById("go").disabled = false;

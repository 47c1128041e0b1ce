// Everything comes from this gateway: the document, this script and the page. Only reading can be tried out here, and only
// on the listener that serves the page: orders of operators belong to the admin listener.
SwaggerUIBundle({
  url: 'openapi.json',
  dom_id: '#docs',
  deepLinking: true,
  docExpansion: 'list',
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  persistAuthorization: false,
  supportedSubmitMethods: ['get', 'head'],
  validatorUrl: null,
});

"""What is generated from the SDL, the clients' operations and the catalogue of errors."""

"""The engines that only tests run on: moto, and the emulator of the demo."""

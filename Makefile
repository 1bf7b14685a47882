# Only a shell around ./run, which works without make.
.PHONY: demo up install test processes browser contract check bench ci schema lock clean-env
export FOLDER EXIT

demo up install test processes browser contract check bench ci schema lock clean-env:
	@./run $@ $(ARGS)

/* opts_list.h - every option of tegula, one row each: the command-line parser, --help, job-file
 * keys and the manual page all come from here. Included with TGI_OPT(...) defined; no guard.
 *
 *   TGI_OPT(ID, name, alias, arg, fallback, verbs, rule, lo, hi, choices, keep, help)
 *
 *   arg       what follows on the command line; NULL for a switch; "[=FILE]": only behind '='
 *   fallback  the default as text; NULL when there is none or the engine works it out (the help
 *             sentence then says how)
 *   rule      how the value is checked when it is set (enum rule in opts.c)
 *   lo, hi    range of RULE_INT
 *   choices   "a|b|c" of RULE_CHOICE
 *   keep      0: how this one command behaves; 1: part of any job, so job files and presets may
 *             hold it; 2: part of one job, in job files only: it names a file or a place in
 *             one image. The verb preset has both: save takes rows with 1, auto plans a job
 */
#define TGI_JOB_ "plan run verify preview"
#define TGI_SET_ "plan run verify preview preset"
#define TGI_EST_ " estimate"
#define TGI_CUT_ " inpaint"
#define TGI_CONV_ " convert-weights"
#define TGI_PRECISIONS_ "auto|fp32|fp16|bf16|O1|O2" /* tgi_precision in this order */

TGI_OPT(MODEL, "model", "m", "FILE", NULL, TGI_JOB_ " preset" TGI_EST_, RULE_TEXT, 0, 0, NULL,
        2,
        "the network: an ONNX file, or a package of bioimage.io (a folder, .zip or rdf.yaml)")
TGI_OPT(INPUT, "input", NULL, "FILE", NULL, TGI_JOB_ " preset copy plot" TGI_CUT_ TGI_CONV_,
        RULE_TEXT, 0, 0, NULL, 2,
        "the image (TIFF, PNG, JPEG), film or array (.npy), or a folder, 'a*.tif' or "
        "img_%05d.tif as "
        "one stack; "
        "usually given without --input; - with a film as output: a film (.y4m, or --raw) from "
        "standard input")
TGI_OPT(
    RAW, "raw", NULL, "WIDTHxHEIGHT,FORMAT[,FPS]", NULL, TGI_JOB_ " preset copy", RULE_TEXT, 0,
    0, NULL, 2,
    "the input, a file or -, is frames without a header, one behind the other, as ffmpeg -f "
    "rawvideo has them: columns, rows, pixels as -pix_fmt spells them, frames a second "
    "(default: 25): 640x360,rgb24,30000/1001")
TGI_OPT(INPUT_TENSOR, "input-tensor", NULL, "NAME=FILE", NULL, TGI_JOB_ " preset", RULE_TENSOR,
        0, 0, NULL, 2,
        "one .npy per network input, repeatable; --input NAME=FILE says the same")
TGI_OPT(
    OUTPUT, "output", "o", "FILE", NULL, "plan run preview copy plot preset" TGI_CUT_ TGI_CONV_,
    RULE_TEXT, 0, 0, NULL, 2,
    "what to write: .tif or .npy, .png or .jpg for a single plane, plan and run: .mp4, .mov, "
    ".mkv, .webm, .y4m or .raw (no header) for a film, f_%05d.png (.jpg, .tif) for a picture "
    "of "
    "each frame, - for a .y4m (--format raw: no header) "
    "through "
    "standard output (preview: .png, "
    "plot: "
    ".svg or .png, convert-weights: .safetensors), DIR/ for an output of each of many images, "
    "or for several network outputs")
TGI_OPT(
    RAM, "ram", NULL, "SIZE", NULL, TGI_SET_ " copy" TGI_EST_ TGI_CUT_, RULE_RAM, 0, 0, NULL, 1,
    "memory budget: 1GiB, 800MiB or 80% of what is free (default: what is free less a margin)")
TGI_OPT(TILE, "tile", "chunk-size", "auto|N|HxW|DxHxW", "auto", TGI_SET_, RULE_TILE, 0, 0, NULL,
        1,
        "size computed at once, in output pixels, of an image rounded up to 16; tiles of a "
        "TIFF divide it, and "
        "have 256 pixels where it is a multiple of 256; too large is refused with the largest "
        "that fits")
TGI_OPT(ROI, "roi", NULL, "z0:z1,y0:y1,x0:x1", NULL, TGI_JOB_ " preset copy info", RULE_ROI, 0,
        0, NULL, 2,
        "only this box, as an image of its own (pixels around it are not read); half open, in "
        "pixels; y0:y1,x0:x1 and empty bounds are fine")
TGI_OPT(
    CHANNELS, "channels", NULL, "LIST", NULL, TGI_JOB_ " preset copy info", RULE_TEXT, 0, 0,
    NULL, 2,
    "only these channels, in this order, by name or by number from 0: GFP,DAPI or 0,2 or 1:3; "
    "name:405 is the channel that is called so, \\, a comma of a name; of a picture its "
    "colours: red,green,blue; one "
    "may come several times, for a network that takes more (default: all)")
TGI_OPT(C, "c", NULL, "LIST", NULL, TGI_SET_ " copy info", RULE_TEXT, 0, 0, NULL, 1,
        "the same as --channels (default: all)")
TGI_OPT(Z, "z", NULL, "LIST", NULL, TGI_SET_ " copy info", RULE_TEXT, 0, 0, NULL, 1,
        "only these slices, numbered from 0: 3:9 (9 not among them), 3-8 (8 among them), 0,5,7 "
        "(default: all)")
TGI_OPT(T, "t", NULL, "LIST", NULL, TGI_SET_ " copy info", RULE_TEXT, 0, 0, NULL, 1,
        "the same for times: 0,5-7 (of a film: --frames)")
TGI_OPT(
    PLANES, "planes", NULL, "LIST", NULL, TGI_JOB_ " preset copy info" TGI_CUT_, RULE_PLANES, 0,
    0, NULL, 2,
    "only these planes of a stack, numbered from 0 in file order (for a network that takes "
    "channels together, these images of several channels, for one over volumes these volumes): "
    "0,2,5-9, 5:10 (10 not among them) or 10- (default: all)")
TGI_OPT(
    FRAMES, "frames", NULL, "A:B", NULL, TGI_JOB_ " preset copy" TGI_CUT_ TGI_EST_, RULE_TEXT,
    0, 0, NULL, 2,
    "only these frames of a film, numbered from 0, B not among them; sound and subtitles of "
    "that time go with them (default: all); estimate video, training propainter: how many")
TGI_OPT(
    START, "start", NULL, "TIME", NULL, TGI_JOB_ " preset copy" TGI_CUT_, RULE_TEXT, 0, 0, NULL,
    2,
    "only frames of a film that are shown then or later, from its first frame on: 90, 1:30 or "
    "00:01:30.04")
TGI_OPT(END, "end", NULL, "TIME", NULL, TGI_JOB_ " preset copy" TGI_CUT_, RULE_TEXT, 0, 0, NULL,
        2, "only frames of a film that are shown before then")
TGI_OPT(WINDOW, "window", NULL, "N", NULL, TGI_SET_, RULE_INT, 1, 64, NULL, 1,
        "the network takes N frames at once, the frame itself and those around it: as many "
        "channels of each behind each other, or as a volume; of N slices that come out the "
        "middle one is written (default: the descriptor's, else 1)")
TGI_OPT(WINDOW_EDGE, "window-edge", NULL, "repeat|mirror", NULL, TGI_SET_, RULE_CHOICE, 0, 0,
        "repeat|mirror", 1,
        "what stands for frames before the first and after the last one (default: the "
        "descriptor's, else repeat)")
TGI_OPT(
    STATE, "state", NULL, "OUT=IN,...", NULL, "plan run preview preset", RULE_TEXT, 0, 0, NULL,
    1,
    "the network's input IN gets what its output OUT gave of the frame before, zeros at first "
    "(default: the descriptor's)")
TGI_OPT(STATE_INIT, "state-init", NULL, "IN=FILE.npy,...", NULL, "plan run preset", RULE_TEXT,
        0, 0, NULL, 2, "what such an input gets with the first frame")
TGI_OPT(
    CONSTANT, "constant", NULL, "IN=FILE.npy,...", NULL, "plan run preset", RULE_TEXT, 0, 0,
    NULL, 2,
    "float32 that the network's input IN gets with each frame, as it is, of the size that the "
    "network sees; of the input that gets the frame, channels of the frame's size that follow "
    "its own: a mask, a map of noise")
TGI_OPT(MASK, "mask", NULL, "FILE", NULL, "inpaint", RULE_TEXT, 0, 0, NULL, 2,
        "what is removed: a picture for all frames, a folder or pattern with one for each, or "
        "a film; what is "
        "not 0 there is removed")
TGI_OPT(MASK_BOX, "mask-box", NULL, "x,y,w,h[@A-B]", NULL, "inpaint", RULE_BOXES, 0, 0, NULL, 2,
        "remove this box, w columns and h rows from column x, row y on, of all frames or of A "
        "to B, numbered from "
        "0, both among them; repeatable, and together with --mask")
TGI_OPT(MASK_THRESHOLD, "mask-threshold", NULL, "N", NULL, "inpaint preset", RULE_INT, 0, 254,
        NULL, 1,
        "what is above N of 255 in the mask is removed (default: all that is not 0; of masks "
        "from films "
        "that lost something when they were encoded 127)")
TGI_OPT(MASK_INVERT, "mask-invert", NULL, NULL, NULL, "inpaint preset", RULE_SWITCH, 0, 0, NULL,
        1, "remove what the mask does not show")
TGI_OPT(MASK_DILATION, "mask-dilation", NULL, "N", "4", "inpaint preset", RULE_INT, 0, 255,
        NULL, 1, "grow what is removed by N pixels, along rows and columns")
TGI_OPT(METHOD, "method", NULL, "propagate|smooth|propainter|show", NULL, "inpaint preset",
        RULE_CHOICE, 0, 0, "propagate|smooth|propainter|show", 1,
        "propagate: what other frames show behind it, followed along the motion of the "
        "picture; what none shows, and "
        "smooth: all of it, is filled smoothly from around; propainter: trained networks draw "
        "it (--weights); show: nothing is removed, what would be is shown in green (default: "
        "propagate, with --weights propainter)")
TGI_OPT(WEIGHTS, "weights", NULL, "DIR", NULL, "inpaint", RULE_TEXT, 0, 0, NULL, 2,
        "the folder with the three published files of ProPainter, .pth or .safetensors: "
        "raft-things, recurrent_flow_completion, ProPainter")
TGI_OPT(SUBVIDEO_LENGTH, "subvideo-length", NULL, "N", "80", "inpaint preset" TGI_EST_,
        RULE_INT, 1, 100000, NULL, 1,
        "propainter: frames that are seen together; memory grows with it")
TGI_OPT(NEIGHBOR_LENGTH, "neighbor-length", NULL, "N", "10", "inpaint preset" TGI_EST_,
        RULE_INT, 2, 100, NULL, 1,
        "propainter: frames around each that are drawn together with it")
TGI_OPT(REF_STRIDE, "ref-stride", NULL, "N", "10", "inpaint preset" TGI_EST_, RULE_INT, 1,
        100000, NULL, 1, "propainter: every N-th frame is a reference for those that are drawn")
TGI_OPT(RAFT_ITER, "raft-iter", NULL, "N", "20", "inpaint preset" TGI_EST_, RULE_INT, 1, 1000,
        NULL, 1, "propainter: times that a motion is refined")
TGI_OPT(FP16, "fp16", NULL, NULL, NULL, "inpaint preset", RULE_SWITCH, 0, 0, NULL, 1,
        "propainter: half precision, as the published script has it, where the hardware does; "
        "processors compute in float32, and a warning says so")
TGI_OPT(
    FEATURE_CACHE, "feature-cache", NULL, "auto|off", "auto", "inpaint preset", RULE_CHOICE, 0,
    0, "auto|off", 1,
    "propainter: auto keeps what the networks found in a frame, as far as memory allows, until "
    "no step looks at it any more; off: it is made again in each step. The frames are the same")
TGI_OPT(REACH, "reach", NULL, "N", "40", "inpaint preset", RULE_INT, 1, 200, NULL, 1,
        "propagate: frames before and after each that are looked at for what lies behind")
TGI_OPT(WIDTH, "width", NULL, "N", NULL, "inpaint preset", RULE_INT, 16, 16384, NULL, 1,
        "with --height: the method works on frames of that size; what it makes is enlarged and "
        "pasted into the film's "
        "(default: the film's)")
TGI_OPT(HEIGHT, "height", NULL, "N", NULL, "inpaint preset", RULE_INT, 16, 16384, NULL, 1,
        "see --width")
TGI_OPT(RESIZE_RATIO, "resize-ratio", NULL, "R", NULL, "inpaint preset", RULE_TEXT, 0, 0, NULL,
        1, "the same by a factor of both sides, such as 0.5, for less memory and time")
TGI_OPT(REGION, "region", NULL, "auto|x,y,w,h", NULL, "inpaint", RULE_TEXT, 0, 0, NULL, 2,
        "the method sees this part of the frames alone, and what it makes is pasted into them: "
        "less memory and time; auto: what the masks of all frames hide, with surroundings of "
        "half its longer side, 64 pixels at least. propainter: sides grow to multiples of 8, "
        "128 at least, and what is drawn is another thing than from whole frames "
        "(default: all of the frame)")
TGI_OPT(OUTPUT_SIZE, "output-size", NULL, "WxH", NULL, "inpaint preset", RULE_TEXT, 0, 0, NULL,
        1,
        "frames of the output have this size, such as 640x360: the film is resized first "
        "(default: the film's size)")
TGI_OPT(COMPOSE, "compose", NULL, "source|official", "source", "inpaint preset", RULE_CHOICE, 0,
        0, "source|official", 1,
        "source: a film that is written holds the samples of the one that is read wherever "
        "nothing is removed; "
        "official: all of a frame is what it became as RGB")
TGI_OPT(
    ALLOW_LOWER_QUALITY, "allow-lower-quality", NULL, NULL, NULL, "inpaint", RULE_SWITCH, 0, 0,
    NULL, 0,
    "where what is asked does not fit: fewer frames together, then smaller frames, as far as "
    "it takes; a warning and the receipt say what became of it")
/* Of larger frames, and of scenes. */
TGI_OPT(MODE, "mode", NULL, "inpainting|outpainting", "inpainting", "inpaint", RULE_CHOICE, 0,
        0, "inpainting|outpainting|video_inpainting|video_outpainting", 2,
        "outpainting: no mask is given; frames become larger by --scale-h and --scale-w, and "
        "what lies around them is made as what is removed is. video_outpainting is taken, too")
TGI_OPT(SCALE_H, "scale-h", NULL, "X", "1.0", "inpaint preset", RULE_TEXT, 0, 0, NULL, 1,
        "outpainting: the height becomes X times the film's, rounded down to a multiple of 8; "
        "the film lies in the middle")
TGI_OPT(SCALE_W, "scale-w", NULL, "X", "1.2", "inpaint preset", RULE_TEXT, 0, 0, NULL, 1,
        "outpainting: the same of the width")
TGI_OPT(SQUEEZE, "squeeze", NULL, NULL, NULL, "inpaint preset", RULE_SWITCH, 0, 0, NULL, 1,
        "outpainting: what was extended is squeezed into the film's size in the end, as the "
        "published script does (default: the output is larger)")
TGI_OPT(
    SPLIT_SCENES, "split-scenes", NULL, "auto|off|FILE", "off", "inpaint", RULE_TEXT, 0, 0,
    NULL, 2,
    "each scene by itself, nothing comes from behind a cut: auto finds cuts in a pass over "
    "the film before and lists them in OUT.cuts.csv; FILE: such a list, or PySceneDetect's, "
    "or numbers of first frames or times, one a line")
TGI_OPT(PREVIEW, "preview", NULL, "TIME", NULL, "inpaint", RULE_TEXT, 0, 0, NULL, 0,
        "write a strip of the frame that is shown then, of pictures of the frame of that "
        "number: the frame, what is "
        "removed, how it moves, what other frames show, the result; -o OUT.png")
TGI_OPT(LIVE, "live", NULL, "FILE.png", NULL, "inpaint", RULE_TEXT, 0, 0, NULL, 0,
        "meanwhile this picture shows the last frame that was made; it is written anew every "
        "second")
TGI_OPT(
    SAVE_FRAMES, "save-frames", NULL, NULL, NULL, "inpaint", RULE_SWITCH, 0, 0, NULL, 0,
    "also write each frame as a PNG of 8 bits into the folder that is named as the film, with "
    "_frames behind it (-o 'out/%05d.png' writes pictures alone)")
TGI_OPT(PLAN_ONLY, "plan", NULL, NULL, NULL, "inpaint", RULE_SWITCH, 0, 0, NULL, 0,
        "say what it would take, in memory, on disk and in time; no frame is made")
/* Many films. --batch is a number of estimate's, which reads it there. */
TGI_OPT(
    BATCH, "batch", NULL, "N|JOBS.csv", NULL, "inpaint estimate", RULE_TEXT, 1, 1000000, NULL,
    0,
    "inpaint: run the jobs of a table, one a line, whose first line names the columns: input, "
    "mask, output and any options; estimate training: samples of one pass (default: 1)")
TGI_OPT(VIDEO_DIR, "video-dir", "video_dir", "DIR", NULL, "inpaint", RULE_TEXT, 0, 0, NULL, 0,
        "run every film and every folder of frames in DIR, with the mask of the same name in "
        "--mask-dir; -o OUTDIR/, or 'OUTDIR/%s.mkv' where %s is the name")
TGI_OPT(MASK_DIR, "mask-dir", "mask_dir", "DIR", NULL, "inpaint", RULE_TEXT, 0, 0, NULL, 0,
        "with --video-dir: where masks lie, a picture, film or folder each, called as the film "
        "is, or NAME_mask (default: --mask or --mask-box for all)")
TGI_OPT(JOBS, "jobs", NULL, "N", "1", "inpaint", RULE_INT, 1, 64, NULL, 0,
        "with --batch or --video-dir: so many films at once, which share the budget and the "
        "threads")
TGI_OPT(EACH, "each", NULL, NULL, NULL, "run plan", RULE_SWITCH, 0, 0, NULL, 0,
        "each file, or each image in a folder, is an image of its own, of any size, with an "
        "output of its name in -o DIR/; "
        "several files are so without it, and one with -o DIR/ where the network has one "
        "output, an image. A command that is given again does what is missing")
TGI_OPT(BATCH_LOG, "batch-log", "batch_log", "FILE", NULL, "inpaint run", RULE_TEXT, 0, 0, NULL,
        0,
        "with --batch or --video-dir: append a line for each job to this CSV (default: "
        "JOBS.log.csv beside the table, OUTDIR/batch.log.csv)")
TGI_OPT(
    SKIP_DONE, "skip-done", "skip_done", NULL, NULL, "inpaint run", RULE_SWITCH, 0, 0, NULL, 0,
    "an output that is finished, and made of this input with these settings, is left as it "
    "is, even with -y, and the exit code is 0 (default: 73); jobs of --batch and --video-dir "
    "have it")
TGI_OPT(
    AXES, "axes", NULL, "ORDER", NULL, TGI_SET_ " copy info", RULE_AXES, 0, 0, NULL, 1,
    "meaning of the image's axes, outermost first, such as TZCYX (default: what the file says)")
TGI_OPT(
    SERIES, "series", NULL, "N", NULL, TGI_JOB_ " preset copy info", RULE_INT, 0, 4095, NULL, 2,
    "which image of a file that holds several, from 0; info lists them (default: the first; of "
    "files that describe each other the first that lies in this one)")
TGI_OPT(LEVEL, "level", NULL, "N", "0", TGI_SET_ " copy", RULE_INT, 0, 15, NULL, 1,
        "resolution level of a pyramid; 0 is full size")
TGI_OPT(
    KEY_Z, "name-z", NULL, "REGEX", NULL, TGI_SET_ " copy info", RULE_TEXT, 0, 0, NULL, 1,
    "of many files: where a name says its place along Z, as the group of an extended regular "
    "expression: 'z(\\d+)'; --z 'z(\\d+)' is the same, and so with c and t")
TGI_OPT(KEY_C, "name-c", NULL, "REGEX", NULL, TGI_SET_ " copy info", RULE_TEXT, 0, 0, NULL, 1,
        "the same for channels, which may have names: '_(DAPI|GFP)'")
TGI_OPT(KEY_T, "name-t", NULL, "REGEX", NULL, TGI_SET_ " copy info", RULE_TEXT, 0, 0, NULL, 1,
        "the same for time")
TGI_OPT(NORMALIZE, "normalize", NULL, "none|scale:a,b|minmax|percentile:lo,hi|zscore", NULL,
        TGI_SET_, RULE_NORMALIZE, 0, 0, NULL, 1,
        "map pixels to what the network expects, with statistics of the whole image, or of "
        "what is chosen of it (--roi, --z, ...); "
        "scale is x*a+b, a may be 1/255 (default: the descriptor's, else none)")
TGI_OPT(STATS, "stats", NULL, "FILE", NULL, TGI_JOB_ " preset", RULE_TEXT, 0, 0, NULL, 2,
        "save the statistics of --normalize there, or use them when the file exists")
TGI_OPT(
    DESCRIPTOR, "descriptor", NULL, "FILE", NULL, TGI_JOB_ " preset", RULE_TEXT, 0, 0, NULL, 2,
    "what the network expects and gives: JSON, the description of a package, or nnU-Net's "
    "plans.json (default: the package's; MODEL with .json for .onnx, or plans.json beside it, "
    "when there)")
TGI_OPT(
    DTYPE, "dtype", NULL, "same|float32|uint8|...", NULL, TGI_SET_ " copy" TGI_EST_, RULE_DTYPE,
    0, 0, NULL, 1,
    "element type of the output; integers are rounded half to even and clipped; the "
    "normalisation is taken back where a descriptor says \"denormalize\" or, without a "
    "descriptor, where the type is an integer (default: the input's where it is taken back, "
    "else what the output's format holds: float32 in a TIFF; copy: same); estimate: of the "
    "data set's pixels (float32)")
TGI_OPT(
    LABELS, "labels", NULL, NULL, NULL, TGI_SET_, RULE_SWITCH, 0, 0, NULL, 1,
    "write a label map instead of the channels, for a network with a channel per class: for "
    "each pixel the number of the largest channel, from 0, as uint8 (above 256 channels "
    "uint16; in arrays int64)")
TGI_OPT(
    POST, "post", NULL, "LIST", NULL, "plan run copy preview preset", RULE_POST, 0, 0, NULL, 1,
    "objects out of the values, step by step: sigmoid, softmax (over channels), threshold:X "
    "(above X is 1, else 0) or otsu, fill-holes, min-size:N, label (numbers of connected "
    "objects; "
    "label:4, label:8 or in volumes label:6, label:26); \"sigmoid,threshold:0.5,label\"; or "
    "alone, for what such a network gives, "
    "stardist[:prob=0.5][:nms=0.4][:grid=1][:rays-first] or "
    "cellpose[:prob=0][:flow=0.4][:niter=200][:min-size=15] (default: the descriptor's, else "
    "none)")
TGI_OPT(OBJECTS, "objects", NULL, "FILE.csv", NULL, "plan run copy", RULE_TEXT, 0, 0, NULL, 2,
        "with --post ...,label, stardist or cellpose: write a table of the objects, a line "
        "each: number, pixels, centre, "
        "box around it, mean of each channel of the input")
TGI_OPT(
    COMPRESS, "compress", NULL, "none|deflate|zstd|lzw", "none", "plan run copy preset",
    RULE_COMPRESS, 0, 0, NULL, 1,
    "compression of a TIFF output, with an optional level as in zstd:3; without one zstd takes "
    "1 and deflate 6")
TGI_OPT(
    FORMAT, "format", NULL, "imagej|raw", NULL, "plan run copy preset" TGI_CUT_, RULE_CHOICE, 0,
    0, "auto|imagej|raw", 1,
    "imagej: a TIFF stack as ImageJ and Fiji keep it: not compressed, at most 4 GiB, of uint8, "
    "uint16, "
    "int16 or float32; raw: frames of -o - without a header, as ffmpeg -f rawvideo reads them "
    "(default: what the name says; TIFF is OME-TIFF)")
TGI_OPT(
    CODEC, "codec", NULL, "h264|hevc|av1|vp9|ffv1|prores|copy-like-input", NULL,
    "plan run preset" TGI_CUT_, RULE_CHOICE, 0, 0,
    "auto|h264|hevc|av1|vp9|ffv1|prores|copy-like-input", 1,
    "how a film is encoded; ffv1 loses nothing, copy-like-input is the one of the film that is "
    "read (default: h264, in a .webm vp9; a .y4m or .raw is not encoded)")
TGI_OPT(CRF, "crf", NULL, "N", NULL, "plan run preset" TGI_CUT_, RULE_INT, 0, 63, NULL, 1,
        "quality of a film's encoder, smaller is better (default: h264 18, hevc 20, vp9 28, "
        "av1 30)")
TGI_OPT(PRESET_SPEED, "preset-speed", NULL, "ultrafast|...|veryslow", NULL,
        "plan run preset" TGI_CUT_, RULE_CHOICE, 0, 0,
        "ultrafast|superfast|veryfast|faster|fast|medium|slow|slower|veryslow", 1,
        "how long a film's encoder looks for fewer bytes, as ffmpeg's -preset; of av1 all "
        "faster than "
        "medium are medium (default: medium)")
TGI_OPT(PIX_FMT, "pix-fmt", NULL, "NAME", NULL, "plan run preset" TGI_CUT_, RULE_TEXT, 0, 0,
        NULL, 1,
        "how a film's pixels are stored, as ffmpeg spells it: yuv420p (default: as in the film "
        "that "
        "was read, else what the codec has that loses least; without a header as in the raw "
        "frames that were read, else rgb24 or what has its samples)")
TGI_OPT(
    FPS, "fps", NULL, "N|N/D", NULL, "plan run preset" TGI_CUT_, RULE_TEXT, 0, 0, NULL, 1,
    "frames a second of the film that is written (default: the times of the film that was "
    "read, else "
    "its time increment, else 25); the other tracks of a film that was read do not go with it")
TGI_OPT(
    ON, "on", NULL, "luma|each", NULL, "plan run preset", RULE_CHOICE, 0, 0, "luma|each", 1,
    "what of a film of colours a network of one channel gets, into a film: luma, and the rest "
    "passes by, resized where the frame is, or each of red, green and blue alone (default: "
    "luma)")
TGI_OPT(DROP_ALPHA, "drop-alpha", NULL, NULL, NULL, "plan run preset" TGI_CUT_, RULE_SWITCH, 0,
        0, NULL, 1,
        "leave out the alpha of a film or of its pictures, where the codec has none or it does "
        "not pass by the network")
TGI_OPT(STRICT, "strict", NULL, NULL, NULL, "plan run preset" TGI_CUT_, RULE_SWITCH, 0, 0, NULL,
        1,
        "refuse to write a film that has not all that the one that is read has: tracks, times, "
        "light levels (default: a warning)")
TGI_OPT(INTERLACED, "interlaced", NULL, "refuse|as-is", NULL, TGI_SET_ TGI_CUT_, RULE_CHOICE, 0,
        0, "refuse|as-is", 1,
        "a film whose frames have the rows of two moments: as-is takes them for one (default: "
        "refuse)")
TGI_OPT(PYRAMID, "pyramid", NULL, "mean|nearest", NULL, "plan run copy preset", RULE_CHOICE, 0,
        0, "none|mean|nearest", 1,
        "also write smaller levels of a TIFF output, each half the one above it: means of 2x2 "
        "pixels, or for labels the first of them (default: none)")
TGI_OPT(PAD, "pad", NULL, "reflect|edge|zero", "reflect", TGI_SET_, RULE_CHOICE, 0, 0,
        "reflect|edge|zero", 1,
        "how pixels beyond the border are made, for --same-size and to fill up to a size the "
        "network accepts; the output is cropped back")
TGI_OPT(SAME_SIZE, "same-size", NULL, NULL, NULL, TGI_SET_, RULE_SWITCH, 0, 0, NULL, 1,
        "give the input's size, times the network's scale: pad where the network shrinks its "
        "input, crop where it rounds sizes up or adds a border (default for images)")
TGI_OPT(RAW_SIZE, "raw-size", NULL, NULL, NULL, TGI_SET_, RULE_SWITCH, 0, 0, NULL, 1,
        "keep the size the network gives (default for .npy)")
TGI_OPT(
    NORM_SCOPE, "norm-scope", NULL, "global|tile", "global", "plan run preview preset",
    RULE_CHOICE, 0, 0, "global|tile", 1,
    "what operators that read the whole image (norms, means, attention) read: all of it, or, "
    "with --tile, each tile with its surroundings alone, as tools do that cut images: then "
    "seams are possible")
TGI_OPT(EXACT, "exact", NULL, NULL, NULL, TGI_SET_ TGI_CUT_, RULE_SWITCH, 0, 0, NULL, 1,
        "direct convolution only: no transform that trades a little accuracy for speed")
TGI_OPT(
    PRECISION, "precision", NULL, "auto|fp32|fp16|bf16|O1|O2", "auto",
    TGI_SET_ TGI_EST_ TGI_CUT_, RULE_CHOICE, 0, 0, TGI_PRECISIONS_, 1,
    "numbers that convolutions multiply: auto is fp32 on the processor, and on a GPU fp16 "
    "where that is measured to be faster, unless the descriptor forbids it. bf16, where that "
    "is faster, halves their weights and errs by some 3e-3 relative (sums and images stay "
    "float32; needs AVX512_BF16); on a GPU, from compute capability 8.0 on, activations are "
    "bf16 too. O1 and O2, for estimate training: autocast, and half weights beside a float32 "
    "copy")
TGI_OPT(
    TF32, "tf32", NULL, NULL, NULL, "plan run verify preset", RULE_SWITCH, 0, 0, NULL, 1,
    "on a GPU from compute capability 8.0 on, in fp32: convolutions and products of "
    "matrices may multiply numbers rounded to 10 bits (TF32), which errs as fp16 does, by 1e-3 "
    "to 4e-3 relative; sums stay float32")
TGI_OPT(NO_CUBLAS, "no-cublas", NULL, NULL, NULL, "plan run preset", RULE_SWITCH, 0, 0, NULL, 1,
        "on a GPU: products of matrices by tegula's own kernels alone. Without it cuBLASLt is "
        "opened where it is installed, computes the same as measured, the memory that it takes "
        "fits and the plan gains by it")
TGI_OPT(
    DEVICE, "device", NULL, "auto|cpu|cuda|cuda:N", "auto",
    "plan run verify preset" TGI_EST_ TGI_CUT_, RULE_DEVICE, 0, 0, NULL, 1,
    "what computes the network: auto is a GPU where there is one that can, else the "
    "processor; with cuda there is no way back to it; inpaint: auto is the processor, but for "
    "--preset auto; estimate video: cuda plans the networks for a GPU, which need not be "
    "there")
TGI_OPT(VRAM, "vram", NULL, "SIZE[,SIZE]", NULL, "plan run verify preset" TGI_EST_ TGI_CUT_,
        RULE_VRAM, 0, 0, NULL, 1,
        "budget of the GPU's memory, driver and libraries included: 4GiB, or 80% of what is "
        "free (default: what is free less a margin); estimate: memory of each GPU, 16GiB or "
        "16GiB,24GiB")
TGI_OPT(THREADS, "threads", NULL, "N", "auto", TGI_SET_ " copy" TGI_EST_ TGI_CUT_, RULE_THREADS,
        1, 1024, NULL, 1, "compute threads; auto is one per processor this process may use")
TGI_OPT(ISA, "isa", NULL, "auto|portable|avx2|avx512", "auto", TGI_SET_ TGI_CUT_, RULE_CHOICE,
        0, 0, "auto|portable|avx2|avx512", 1,
        "instruction set; results of different sets differ in the last bits")
TGI_OPT(IO, "io", NULL, "auto|map|read", "auto", TGI_SET_ " copy", RULE_CHOICE, 0, 0,
        "auto|map|read", 1,
        "has no effect: inputs are always read, never mapped; accepted because older job files "
        "have it")
TGI_OPT(ON_BAD_TILE, "on-bad-tile", NULL, "stop|fill|keep", "stop",
        "plan run copy preset" TGI_CUT_, RULE_CHOICE, 0, 0, "stop|fill|keep", 1,
        "what to do with a strip or tile of the input, or a frame of a film, that cannot be "
        "decoded; "
        "fill: it counts as zeros, OUT.errors.json lists it, and the exit code of the finished "
        "output is 65; keep: the same, but frames of a film are taken as their decoder made "
        "them up")
TGI_OPT(ALLOW_TRUNCATED, "allow-truncated", NULL, NULL, NULL, TGI_SET_ " copy" TGI_CUT_,
        RULE_SWITCH, 0, 0, NULL, 1,
        "take the frames that are there of a film that is cut, with a warning (default: exit "
        "code 65 where there are fewer than its video stream declares)")
TGI_OPT(
    SCRATCH, "scratch", NULL, "DIR", NULL, "plan run preview copy preset" TGI_CUT_, RULE_TEXT,
    0, 0, NULL, 1,
    "folder for temporary files of four kinds: an input whose large compressed blocks would "
    "be "
    "decoded again and again is decoded once into it; values that a network in stages keeps "
    "between them may lie in it instead of in memory; frames that inpaint keeps; tables of "
    "what "
    "touches (--post) that memory does not hold; auto is the "
    "folder for temporary files (TMPDIR), if that is on a disk (default: none)")
TGI_OPT(AT, "at", NULL, "z,y,x", NULL, "preview", RULE_AT, 0, 0, NULL, 2,
        "centre of the crop; y,x is fine (default: the densest place)")
TGI_OPT(TIME, "time", NULL, "TIME", NULL, "preview", RULE_TEXT, 0, 0, NULL, 2,
        "of a film: the frame that is shown then, counted from its first one on: 90.5, 1:30 or "
        "00:01:30.04 (default: the middle one)")
TGI_OPT(
    KIND, "kind", NULL, "images|text|vqa", NULL, "estimate", RULE_CHOICE, 0, 0,
    "images|text|vqa", 0,
    "data: what a sample is; vqa has an image, a question and an answer (default: images; of "
    "a list vqa)")
TGI_OPT(
    SAMPLES, "samples", NULL, "N", NULL, "estimate mem", RULE_INT, 1, 1000000000000, NULL, 0,
    "estimate data: number of samples (default: counted in the files that are named); mem: end "
    "--watch after N samples (default: go on until stopped)")
TGI_OPT(
    SIZE, "size", NULL, "HxW[xC]", NULL, "estimate", RULE_DIMS, 0, 0, NULL, 0,
    "pixels and channels of a sample (default: 224x224x3; of a model what it declares); video, "
    "training propainter: columns and rows, WxH (default: 1280x720, 432x240)")
TGI_OPT(PRELOAD, "preload", NULL, "yes|no", "yes", "estimate", RULE_CHOICE, 0, 0, "yes|no", 0,
        "data vqa: whether images are in memory, or read from disk when they are needed")
TGI_OPT(LENGTH, "length", NULL, "N", "128", "estimate", RULE_INT, 0, 1000000000, NULL, 0,
        "data text, batch: tokens of a sample; batch: 0 for none")
TGI_OPT(QUESTION_LENGTH, "question-length", NULL, "N", "32", "estimate", RULE_INT, 1,
        1000000000, NULL, 0, "data vqa: tokens of a question")
TGI_OPT(ANSWER_LENGTH, "answer-length", NULL, "N", "32", "estimate", RULE_INT, 1, 1000000000,
        NULL, 0, "data vqa: tokens of an answer")
TGI_OPT(TOKEN_DTYPE, "token-dtype", NULL, "int64|int32|...", "int64", "estimate", RULE_DTYPE, 0,
        0, NULL, 0, "data: element type of tokens")
TGI_OPT(METADATA, "metadata", NULL, "SIZE", "1KiB", "estimate", RULE_SIZE, 0, 0, NULL, 0,
        "data vqa: names, ids and the like of a sample")
TGI_OPT(PARAMS, "params", NULL, "N", NULL, "estimate", RULE_PARAMS, 0, 0, NULL, 0,
        "batch: parameters of the model: 110M, 1.3B or all digits")
TGI_OPT(HIDDEN, "hidden", NULL, "N", "768", "estimate", RULE_INT, 1, 1000000, NULL, 0,
        "batch: width of a token's embedding")
TGI_OPT(
    GPU, "gpu", NULL, "NAME[,NAME]", NULL, "estimate", RULE_TEXT, 0, 0, NULL, 0,
    "GPUs of configs/gpus.json by name, such as \"RTX 4090\" or rtx4090; gpu: the one there "
    "is, to name the next worth having")
TGI_OPT(ACCUMULATION, "accumulation", NULL, "N", "1", "estimate", RULE_INT, 1, 1000000, NULL, 0,
        "training: passes whose gradients are added before a step")
TGI_OPT(CHECKPOINTING, "checkpointing", NULL, NULL, NULL, "estimate", RULE_SWITCH, 0, 0, NULL,
        0, "training: keep the borders of segments only and compute the rest again")
TGI_OPT(OPTIMIZER, "optimizer", NULL, "adam|adamw|sgd|...", "adam", "estimate", RULE_CHOICE, 0,
        0, "adam|adamw|sgd|momentum|rmsprop|adagrad|amsgrad", 0,
        "training: adam, adamw, sgd, momentum, rmsprop, adagrad or amsgrad")
TGI_OPT(LOSS_SCALE, "loss-scale", NULL, "dynamic|none|X", NULL, "estimate", RULE_LOSS_SCALE, 0,
        0, NULL, 0,
        "training: factor of the loss in half precision (default: dynamic for O1 and O2, else "
        "none)")
TGI_OPT(
    DEADLINE, "deadline", NULL, "TIME", NULL, "estimate", RULE_DURATION, 0, 0, NULL, 0,
    "gpu: name the cheapest GPU (without --price the slowest) that finishes within TIME: 90s, "
    "45m or 24h")
TGI_OPT(EFFICIENCY, "efficiency", NULL, "PERCENT", "50%", "estimate", RULE_SHARE, 0, 0, NULL, 0,
        "gpu, video: share of a GPU's roofline that is reached, an assumption")
TGI_OPT(PRICE, "price", NULL, "NAME=X[,...]", NULL, "estimate", RULE_PRICES, 0, 0, NULL, 0,
        "gpu, video: price of an hour, in any currency: \"V100 16GB=3.06,L4=0.8\"")
TGI_OPT(LOG, "log", NULL, "FILE", NULL, "run verify" TGI_CUT_, RULE_TEXT, 0, 0, NULL, 0,
        "write the memory in use over time as CSV (docs/reference/tracker.md); a run that goes "
        "on appends")
TGI_OPT(
    LOG_INTERVAL, "log-interval", NULL, "TIME|Nu", NULL, "run verify" TGI_CUT_, RULE_INTERVAL,
    0, 0, NULL, 0,
    "time between the lines of --log, such as 500ms or 2s, or 10u: a line every ten updates "
    "(default: 100ms)")
TGI_OPT(PLOT, "plot", NULL, "[=FILE]", NULL, "run verify" TGI_CUT_, RULE_PICTURE, 0, 0, NULL, 0,
        "at the end draw the memory in use as FILE.svg or FILE.png (alone: OUT.memory.svg); "
        "without --log its numbers go to OUT.memory.csv")
TGI_OPT(THEME, "theme", NULL, "auto|light|dark", "auto", "plot", RULE_CHOICE, 0, 0,
        "auto|light|dark", 0,
        "colours of the picture; auto: as whoever looks at an SVG prefers, light for a PNG")
TGI_OPT(TRACE, "trace", NULL, "FILE", NULL, TGI_JOB_ " copy" TGI_CUT_, RULE_TEXT, 0, 0, NULL, 0,
        "write every allocation, with its begin, end, size, tag and place in the source, as "
        "JSON")
TGI_OPT(WATCH, "watch", NULL, "TIME", NULL, "mem", RULE_DURATION, 0, 0, NULL, 0,
        "repeat every TIME (500ms, 1s, 2m) until stopped: one line each time, with --json one "
        "event")
TGI_OPT(CSV, "csv", NULL, "FILE", NULL, "mem", RULE_TEXT, 0, 0, NULL, 0,
        "append a row for each sample; a file that is there must have the same columns")
TGI_OPT(REQUIRE, "require", NULL, "SIZE", NULL, "mem", RULE_SIZE, 0, 0, NULL, 0,
        "warn and end with exit code 71 when less memory than SIZE is free, such as 10GiB")
TGI_OPT(REQUIRE_VRAM, "require-vram", NULL, "SIZE", NULL, "mem", RULE_SIZE, 0, 0, NULL, 0,
        "the same for GPU memory: of the GPU that has most of it free")
TGI_OPT(
    ROOT, "root", NULL, "DIR", NULL, "mem doctor", RULE_TEXT, 0, 0, NULL, 0,
    "read /proc and /sys below this folder, such as /host where a container sees the machine "
    "(default: /)")
TGI_OPT(CONFIG, "config", NULL, "FILE", NULL, TGI_SET_ " copy" TGI_CUT_, RULE_TEXT, 0, 0, NULL,
        0, "read options from this job file; the command line wins")
TGI_OPT(
    MACHINE, "machine", NULL, "FILE", NULL, "plan preset" TGI_EST_ TGI_CUT_, RULE_TEXT, 0, 0,
    NULL, 0,
    "answer for another machine: FILE is what tegula mem --json printed there (default: this "
    "machine)")
TGI_OPT(
    PRESET, "preset", NULL, "NAME|FILE", NULL, TGI_SET_ " copy" TGI_CUT_, RULE_PRESET, 0, 0,
    NULL, 0,
    "start from the settings of this preset, which tegula preset list names, or of a file; a "
    "job file and the command line win; inpaint: auto is the highest quality that fits the "
    "memory, and says what else there is")
TGI_OPT(ABOUT, "about", NULL, "TEXT", NULL, "preset", RULE_TEXT, 0, 0, NULL, 0,
        "save: the sentence that tegula preset list shows (default: the settings)")
TGI_OPT(SAVE, "save", NULL, "FILE", NULL, "plan run", RULE_TEXT, 0, 0, NULL, 0,
        "write every setting, resolved, as a job file for --config")
TGI_OPT(
    PICTURE, "picture", NULL, "FILE.png", NULL, "verify", RULE_TEXT, 0, 0, NULL, 0,
    "draw the middle of the output: above, whole, tiled and their difference; below, whole, "
    "tiles of 256 pixels computed as images of their own, and the seams that this leaves")
TGI_OPT(WHY, "why", NULL, NULL, NULL, "plan", RULE_SWITCH, 0, 0, NULL, 0,
        "also show the plans that were rejected, and why, stages, and settings left at their "
        "defaults; where no plan fits, what was tried")
TGI_OPT(
    YES, "yes", "y", NULL, NULL, "plan run verify preview copy preset plot" TGI_CUT_ TGI_CONV_,
    RULE_SWITCH, 0, 0, NULL, 0,
    "overwrite an output that is finished, or that another job left unfinished, a preset, and "
    "what --log, --plot, --trace or --save name")
TGI_OPT(JSON, "json", NULL, NULL, NULL,
        TGI_SET_
        " copy info calibrate version mem doctor plot status" TGI_EST_ TGI_CUT_ TGI_CONV_,
        RULE_SWITCH, 0, 0, NULL, 0, "results as one JSON object per line on stdout")
TGI_OPT(QUIET, "quiet", "q", NULL, NULL,
        TGI_SET_ " copy info calibrate mem plot status" TGI_EST_ TGI_CUT_ TGI_CONV_,
        RULE_SWITCH, 0, 0, NULL, 0, "no progress and no closing line; warnings and errors stay")
TGI_OPT(VERBOSE, "verbose", "v", NULL, NULL,
        TGI_JOB_ " copy info plot" TGI_EST_ TGI_CUT_ TGI_CONV_, RULE_SWITCH, 0, 0, NULL, 0,
        "say what is being done; twice: everything")

#undef TGI_JOB_
#undef TGI_SET_
#undef TGI_EST_
#undef TGI_CUT_
#undef TGI_CONV_
